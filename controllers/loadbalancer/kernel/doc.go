// Package kernel has the kernel of a load balancer's machine pass on what comes to ports of Services, in place of package proxy: by rules of
// nftables, which nodeagent/nftables writes. Pools, health and shares are the proxy's, and come in as values.
//
//	proxy.Spreads ─▶ Ports ─▶ nodeagent/nftables       what goes where: elements of maps that change while connections go on
//	              └▶ lost targets ─▶ conntrack.End     their flows end; clients of TCP are reset (reset.go)
//	nftables' counters ─▶ watchers ─▶ proxy.Delivered  what targets took, refused or did not answer (count.go)
//
// What the kernel cannot do stays with the proxy, which listens at the same ports and gets what no rule takes: PROXY protocol, connections whose
// family no cluster in use has, and everything while there are no rules.
//
// One process of a machine writes the rules at a time (claim.go). They stay when it is killed, and another one takes them over.
package kernel
