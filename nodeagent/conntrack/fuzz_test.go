package conntrack

import (
	"encoding/hex"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"federation/nodeagent/ruleset"
)

// An entry of UDP from 10.180.0.2:4660 to 10.96.0.10:53 that 10.180.1.2:53 answers, as the kernel writes it.
const entryBytes = "34000180" + "14000180" + "08000100" + "0ab40002" + "08000200" + "0a60000a" + "1c000280" + "05000100" + "11000000" + "06000200" + "12340000" + "06000300" + "00350000" +
	"34000280" + "14000180" + "08000100" + "0ab40102" + "08000200" + "0ab40002" + "1c000280" + "05000100" + "11000000" + "06000200" + "00350000" + "06000300" + "12340000" +
	"08000c00" + "01020304"

func TestParseFlow(t *testing.T) {
	b, err := hex.DecodeString(entryBytes)
	if err != nil {
		t.Fatal(err)
	}
	f := parse(unix.NFPROTO_IPV4, b)
	if f == nil || f.protocolName() != corev1.ProtocolUDP || f.to.String() != "10.96.0.10:53" || f.answers.String() != "10.180.1.2:53" || len(f.id) != 4 {
		t.Errorf("parsed as %+v", f)
	}
}

// Whatever the kernel sends, a parsed flow has two ends.
func FuzzParse(f *testing.F) {
	b, err := hex.DecodeString(entryBytes)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint8(unix.NFPROTO_IPV4), b)
	f.Add(uint8(unix.NFPROTO_IPV6), b[:60])
	k := frontends([]ruleset.PortChange{{After: port(corev1.ProtocolUDP, []string{"10.180.1.2:53"}, nil, "10.96.0.10:53", "0.0.0.0:30053")}})
	f.Fuzz(func(t *testing.T, family uint8, data []byte) {
		if flow := parse(family, data); flow != nil {
			if !flow.to.IsValid() || !flow.answers.IsValid() {
				t.Errorf("a flow without an end: %+v", flow)
			}
			k.isStale(flow, netip.Addr.IsPrivate)
		}
	})
}
