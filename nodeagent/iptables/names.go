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

// The prefix of all chain names: kube-proxy's or, if one is there, another.
const (
	kube      = "KUBE-"
	federated = "FED-"
)

// The chains that are there always, and what the names of the others begin with, all without kube or federated.
const (
	chainServices    = "SERVICES"
	chainNodePorts   = "NODEPORTS" // nat: node ports; filter: health check node ports
	chainPostrouting = "POSTROUTING"
	chainMarkMasq    = "MARK-MASQ"
	chainMarkReject  = "MARK-REJECT"
	chainMarkDrop    = "MARK-DROP"
	chainRefuse      = "REFUSE"
	chainForward     = "FORWARD"

	// kube-proxy's in the table filter, which go where it was.
	chainExternal = "EXTERNAL-SERVICES"
	chainFirewall = "PROXY-FIREWALL"

	prefixCluster  = "SVC-"
	prefixOwn      = "SVO-"
	prefixLocal    = "SVL-"
	prefixExternal = "EXT-"
	prefixFirewall = "FW-"
	prefixBackend  = "SEP-"
	prefixTree     = "NET-"
)

// names is kube or federated.
type names string

// namesFor returns those of a node's scope.
func namesFor(node *ruleset.Node) names {
	if node.Federated {
		return federated
	}
	return kube
}

// to returns the end of a rule with one of our chains as target.
func (n names) to(chain string) string { return "-j " + string(n) + chain }

// target returns our chain that a rule leads to, or "".
func (n names) target(rule string) string {
	_, rest, _ := strings.Cut(rule, n.to(""))
	chain, _, _ := strings.Cut(rest, " ")
	return chain
}

// ownChain reports whether a chain is one that this package, or kube-proxy, makes and may delete, and returns its name
// without n.
func (n names) ownChain(name string) (chain string, is bool) {
	chain, is = strings.CutPrefix(name, string(n))
	switch chain {
	case chainServices, chainNodePorts, chainPostrouting, chainMarkMasq, chainMarkReject, chainMarkDrop, chainRefuse, chainForward,
		chainExternal, chainFirewall:
		return chain, is
	}
	for _, prefix := range []string{prefixCluster, prefixOwn, prefixLocal, prefixExternal, prefixFirewall, prefixBackend, prefixTree} {
		if strings.HasPrefix(chain, prefix) {
			return chain, is
		}
	}
	return chain, false
}

// marks are the bits of packets' marks.
type marks struct{ masquerade, reject, drop string }

// marks returns the marks of the scope. kube-proxy clears its own (0x4000) after it masqueraded, so beside one it is
// another. Drop is the same for all who use it (kubelet did).
func (n names) marks() marks {
	m := marks{masquerade: "0x4000", reject: "0x2000", drop: "0x8000"}
	if n == federated {
		m.masquerade = "0x1000"
	}
	return m
}

// addrScope returns the tree's scope over addresses.
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

// portKey returns a node port as a key of a tree: the protocol's number, then the port's.
func portKey(k ruleset.FrontendKey) string {
	return string([]byte{protocolNumber[k.Protocol], byte(k.Port >> 8), byte(k.Port)})
}

var protocolNumber = map[corev1.Protocol]byte{corev1.ProtocolTCP: 6, corev1.ProtocolUDP: 17, corev1.ProtocolSCTP: 132}

// portScope returns the tree's scope over node ports. Prefixes within the protocol's byte say nothing.
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
