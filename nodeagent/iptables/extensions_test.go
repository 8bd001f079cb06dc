package iptables

import (
	"testing"
	"unsafe"
)

// TestExtensions_HaveTheKernelsLayout: sizes and offsets as C has them, of structs whose fields are not all of one size.
func TestExtensions_HaveTheKernelsLayout(t *testing.T) {
	var (
		sctp      xtSCTPInfo
		statistic xtStatisticInfo
		conntrack xtConntrackMatchInfo3
		recent    xtRecentMatchInfoV1
		nat       nfNATRange2
		masq      nfNATIPv4MultiRange
	)
	for name, c := range map[string]struct{ is, want uintptr }{
		"xt_tcp":                           {unsafe.Sizeof(xtTCPInfo{}), 12},
		"xt_sctp_info":                     {unsafe.Sizeof(sctp), 292},
		"xt_sctp_info.flag_info":           {unsafe.Offsetof(sctp.chunkFlags), 268},
		"xt_sctp_info.flags":               {unsafe.Offsetof(sctp.flags), 284},
		"xt_statistic_info":                {unsafe.Sizeof(statistic), 24},
		"xt_statistic_info.u.nth.count":    {unsafe.Offsetof(statistic.nthCount), 12},
		"xt_addrtype_info_v1":              {unsafe.Sizeof(xtAddrTypeInfoV1{}), 8},
		"xt_mark_mtinfo1":                  {unsafe.Sizeof(xtMarkMatchInfo1{}), 12},
		"xt_conntrack_mtinfo3":             {unsafe.Sizeof(conntrack), 164},
		"xt_conntrack_mtinfo3.match_flags": {unsafe.Offsetof(conntrack.matchFlags), 146},
		"xt_conntrack_mtinfo3.state_mask":  {unsafe.Offsetof(conntrack.stateMask), 150},
		"xt_recent_mtinfo_v1":              {unsafe.Sizeof(recent), 228},
		"xt_recent_mtinfo_v1.name":         {unsafe.Offsetof(recent.name), 10},
		"xt_recent_mtinfo_v1.mask":         {unsafe.Offsetof(recent.mask), 212},
		"nf_nat_range":                     {unsafe.Sizeof(nfNATRange{}), 40},
		"nf_nat_range2":                    {unsafe.Sizeof(nat), 44},
		"nf_nat_range2.min_proto":          {unsafe.Offsetof(nat.minPort), 36},
		"nf_nat_ipv4_multi_range_compat":   {unsafe.Sizeof(masq), 20},
		"nf_nat_ipv4_range.flags":          {unsafe.Offsetof(masq.flags), 4},
	} {
		if c.is != c.want {
			t.Errorf("%s: %d, want %d", name, c.is, c.want)
		}
	}
}
