package iptables

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"federation/nodeagent/ruleset"
)

// The chains that are there always, and what the names of the others begin with.
const (
	chainServices    = "KUBE-SERVICES"
	chainNodePorts   = "KUBE-NODEPORTS" // nat: node ports; filter: health check node ports
	chainPostrouting = "KUBE-POSTROUTING"
	chainMarkMasq    = "KUBE-MARK-MASQ"
	chainMarkReject  = "KUBE-MARK-REJECT"
	chainMarkDrop    = "KUBE-MARK-DROP"
	chainRefuse      = "KUBE-REFUSE"
	chainForward     = "KUBE-FORWARD"

	prefixCluster  = "KUBE-SVC-"
	prefixLocal    = "KUBE-SVL-"
	prefixExternal = "KUBE-EXT-"
	prefixFirewall = "KUBE-FW-"
	prefixBackend  = "KUBE-SEP-"
	prefixTree     = "KUBE-NET-"
)

// The marks of packets.
const (
	masqueradeMark = "0x4000"
	rejectMark     = "0x2000"
	dropMark       = "0x8000"
)

// ours tells whether a chain is one that this package makes and may take away.
func ours(chain string) bool {
	switch chain {
	case chainServices, chainNodePorts, chainPostrouting, chainMarkMasq, chainMarkReject, chainMarkDrop, chainRefuse, chainForward:
		return true
	}
	for _, prefix := range []string{prefixCluster, prefixLocal, prefixExternal, prefixFirewall, prefixBackend, prefixTree} {
		if strings.HasPrefix(chain, prefix) {
			return true
		}
	}
	return false
}

// addrScope is the tree's scope over addresses.
func addrScope(key string, bits int) (match, chain string) {
	addr, _ := netip.AddrFromSlice([]byte(key))
	prefix, _ := addr.Prefix(bits)
	name := strings.ReplaceAll(prefix.String(), "/", "-")
	if addr.Is6() { // a name has at most 28 characters
		sum := sha256.Sum256([]byte(name))
		name = base32.StdEncoding.EncodeToString(sum[:])[:16]
	}
	return "-d " + prefix.String(), prefixTree + name
}

// portKey is a node port as a key of a tree: the protocol's number, then the port's.
func portKey(k ruleset.FrontendKey) string {
	return string([]byte{protocolNumber[k.Protocol], byte(k.Port >> 8), byte(k.Port)})
}

var protocolNumber = map[corev1.Protocol]byte{corev1.ProtocolTCP: 6, corev1.ProtocolUDP: 17, corev1.ProtocolSCTP: 132}

// portScope is the tree's scope over node ports. Prefixes within the protocol's byte say nothing.
func portScope(key string, bits int) (match, chain string) {
	name := map[byte]string{6: "tcp", 17: "udp", 132: "sctp"}[key[0]]
	if bits < 8 {
		return "", fmt.Sprintf("%sPORT-%x-%d", prefixTree, key[0]>>4, bits)
	}
	lo := (int(key[1])<<8 | int(key[2])) &^ (1<<(24-bits) - 1)
	hi := lo | (1<<(24-bits) - 1)
	if bits == 8 {
		return "-p " + name, prefixTree + strings.ToUpper(name)
	}
	return fmt.Sprintf("-p %s -m %s --dport %d:%d", name, name, lo, hi), fmt.Sprintf("%s%s-%d-%d", prefixTree, strings.ToUpper(name), lo, bits)
}
