package iptables

// What extensions of iptables have for the kernel: the structs of C of linux/netfilter/xt_*.h, field by field. Numbers are in the machine's order
// of bytes; ports that stand as bytes are in the network's.

// xtTCPInfo is struct xt_tcp, which struct xt_udp begins like.
type xtTCPInfo struct {
	sourcePorts, destinationPorts         [2]uint16
	option, flagMask, flagCompare, invert uint8
}

// xtSCTPInfo is struct xt_sctp_info.
type xtSCTPInfo struct {
	destinationPorts, sourcePorts [2]uint16
	chunkMap                      [64]uint32
	chunkMatchType                uint32
	chunkFlags                    [4]struct{ chunkType, flag, mask uint8 }
	flagCount                     int32
	flags, invert                 uint32
}

// xtSCTPDestPorts is XT_SCTP_DEST_PORTS, of xtSCTPInfo.flags.
const xtSCTPDestPorts = 2

// xtCommentInfo is struct xt_comment_info.
type xtCommentInfo struct{ comment [256]byte }

// xtStatisticInfo is struct xt_statistic_info; its union's two forms share the first number.
type xtStatisticInfo struct {
	mode, flags         uint16
	probability         uint32
	nthPacket, nthCount uint32
	master              uint64 // the kernel's
}

// xtAddrTypeInfoV1 is struct xt_addrtype_info_v1.
type xtAddrTypeInfoV1 struct {
	source, destination uint16
	flags               uint32
}

// xtMarkMatchInfo1 is struct xt_mark_mtinfo1.
type xtMarkMatchInfo1 struct {
	mark, mask uint32
	invert     uint8
}

// xtMarkTargetInfo2 is struct xt_mark_tginfo2.
type xtMarkTargetInfo2 struct{ mark, mask uint32 }

// xtConntrackMatchInfo3 is struct xt_conntrack_mtinfo3.
type xtConntrackMatchInfo3 struct {
	addrs                  [8][16]byte
	expiresMin, expiresMax uint32
	protocol               uint16
	ports                  [4]uint16
	matchFlags, invert     uint16
	stateMask, statusMask  uint16
	portsHigh              [4]uint16
}

// xtConntrackState is XT_CONNTRACK_STATE, of xtConntrackMatchInfo3.matchFlags.
const xtConntrackState = 1

// xtRecentMatchInfoV1 is struct xt_recent_mtinfo_v1.
type xtRecentMatchInfoV1 struct {
	seconds, hitCount uint32
	checkSet, invert  uint8
	name              [200]byte
	side              uint8
	_                 uint8
	mask              [16]byte
}

// Of xtRecentMatchInfoV1.checkSet: XT_RECENT_CHECK, XT_RECENT_SET, XT_RECENT_REAP.
const (
	xtRecentCheck = 1
	xtRecentSet   = 2
	xtRecentReap  = 32
)

// nfNATRange is struct nf_nat_range.
type nfNATRange struct {
	flags            uint32
	minAddr, maxAddr [16]byte
	minPort, maxPort [2]byte
}

// nfNATRange2 is struct nf_nat_range2.
type nfNATRange2 struct {
	flags                      uint32
	minAddr, maxAddr           [16]byte
	minPort, maxPort, basePort [2]byte
}

// nfNATIPv4MultiRange is struct nf_nat_ipv4_multi_range_compat with its one range.
type nfNATIPv4MultiRange struct {
	size, flags      uint32
	minAddr, maxAddr [4]byte
	minPort, maxPort [2]byte
}

// Of the flags of ranges: NF_NAT_RANGE_MAP_IPS, NF_NAT_RANGE_PROTO_SPECIFIED, NF_NAT_RANGE_PROTO_RANDOM_FULLY.
const (
	nfNATRangeMapIPs           = 1
	nfNATRangeProtoSpecified   = 2
	nfNATRangeProtoRandomFully = 16
)

// rejectInfo is struct ipt_reject_info, and ip6t_reject_info.
type rejectInfo struct{ with uint32 }
