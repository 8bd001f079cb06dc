package iptables

import (
	"fmt"
	"math"
	"net/netip"
	"strings"

	"federation/nodeagent/ruleset"
)

// dialect is what rules depend on besides the Port. Rules are written as iptables-save prints them, so that text can be
// compared.
type dialect struct {
	names
	ipv6  bool
	fully bool // --random-fully
	node  *ruleset.Node
}

// hostText returns an address as iptables-save prints it.
func hostText(a netip.Addr) string { return netip.PrefixFrom(a, a.BitLen()).String() }

func protocolName(id ruleset.PortID) string { return strings.ToLower(string(id.Protocol)) }

func destination(f *ruleset.Frontend) string {
	p := strings.ToLower(string(f.Key.Protocol))
	out := fmt.Sprintf("-p %s -m %s --dport %d", p, p, f.Key.Port)
	if f.Key.Addr.IsValid() {
		out = "-d " + hostText(f.Key.Addr) + " " + out
	}
	return out
}

// dispatch returns the rule from a tree to a frontend's chain.
func (d dialect) dispatch(p *ruleset.Port, f *ruleset.Frontend) string {
	return fmt.Sprintf("%s -m comment --comment \"%s %s\" %s", destination(f), p.ID, f.Kind, d.to(entryChain(p, f)))
}

// entryChain returns the first chain of a frontend.
func entryChain(p *ruleset.Port, f *ruleset.Frontend) string {
	if f.Kind.Inside() {
		return target(p, f.FromOutside.To)
	}
	if len(f.SourceRanges) > 0 {
		return prefixFirewall + p.Hash
	}
	return externalChain(p, f)
}

// externalChain returns the chain of a frontend that is reached from outside, if its routes differ or masquerade.
func externalChain(p *ruleset.Port, f *ruleset.Frontend) string {
	if to := f.FromOutside; f.FromPod == to && f.FromNode == to && !to.Masquerade {
		return target(p, to.To)
	}
	return prefixExternal + p.Hash
}

func target(p *ruleset.Port, to ruleset.Target) string {
	switch to {
	case ruleset.ToCluster:
		return prefixCluster + p.Hash
	case ruleset.ToOwn:
		return prefixOwn + p.Hash
	case ruleset.ToLocal:
		return prefixLocal + p.Hash
	case ruleset.Drop:
		return chainMarkDrop
	}
	return chainMarkReject
}

// chains returns a Port's own chains in nat, with their rules.
func (d dialect) chains(p *ruleset.Port) map[string][]string {
	out := map[string][]string{}
	for i := range p.Frontends {
		f := &p.Frontends[i]
		if f.Kind.Inside() || f.Uses(ruleset.Yield) {
			continue
		}
		if c := externalChain(p, f); strings.HasPrefix(c, prefixExternal) {
			out[c] = d.externalRules(p, f)
		}
		if len(f.SourceRanges) > 0 {
			out[prefixFirewall+p.Hash] = d.firewallRules(p, f)
		}
	}
	for _, to := range ruleset.Pools {
		if pool := *p.Pool(to); len(pool.Backends) > 0 {
			chains := make([]string, len(pool.Backends)) // a name is a hash, which costs more than the rule
			for i, b := range pool.Backends {
				chains[i] = prefixBackend + p.ID.BackendHash(b.Addr)
				out[chains[i]] = d.backend(p, b, chains[i])
			}
			out[target(p, to)] = append(d.insideRules(p, to), d.poolRules(p, pool, chains)...)
		}
	}
	return out
}

// insideRules mark packets to a cluster or clusterset IP that are not from a pod: the first rules of the serving chain.
func (d dialect) insideRules(p *ruleset.Port, to ruleset.Target) (out []string) {
	for i := range p.Frontends {
		if f := &p.Frontends[i]; f.Kind.Inside() && f.FromOutside.To == to && f.FromOutside.Masquerade {
			out = append(out, d.notFromPod(f)+" "+d.to(chainMarkMasq))
		}
	}
	return out
}

// fromPod matches what pods send.
func (d dialect) fromPod() string {
	switch pods := d.node.Pods.OfFamily(d.ipv6); {
	case len(pods.CIDRs) > 0:
		return "-s " + pods.CIDRs[0].Masked().String()
	case pods.Bridge != "":
		return "-i " + pods.Bridge
	default:
		return "-i " + pods.InterfacePrefix + "+"
	}
}

// notFromPod matches packets to a cluster IP, except those that pods may send there without being masqueraded.
func (d dialect) notFromPod(f *ruleset.Frontend) string {
	to := destination(f)
	switch pods := d.node.Pods.OfFamily(d.ipv6); {
	case f.FromPod.Masquerade:
		return to
	case len(pods.CIDRs) > 0:
		return "! " + d.fromPod() + " " + to
	}
	addr := "-d " + hostText(f.Key.Addr) // iptables-save has the interface after it
	return addr + " ! " + d.fromPod() + strings.TrimPrefix(to, addr)
}

// externalRules divide connections by where they are from.
func (d dialect) externalRules(p *ruleset.Port, f *ruleset.Frontend) []string {
	var out []string
	add := func(match string, r ruleset.Route) {
		if r.Masquerade {
			out = append(out, match+d.to(chainMarkMasq))
		}
		out = append(out, match+d.to(target(p, r.To)))
	}
	if f.FromPod != f.FromOutside {
		add(d.fromPod()+" ", f.FromPod)
	}
	if f.FromNode != f.FromOutside {
		add("-m addrtype --src-type LOCAL ", f.FromNode)
	}
	add("", f.FromOutside)
	return out
}

func (d dialect) firewallRules(p *ruleset.Port, f *ruleset.Frontend) []string {
	var out []string
	for _, r := range f.SourceRanges {
		out = append(out, "-s "+r.String()+" "+d.to(externalChain(p, f)))
	}
	return append(out, d.to(chainMarkDrop))
}

// poolRules choose a backend: first the client's previous one, then by weight, each rule with its share of what the
// rules before it left over.
func (d dialect) poolRules(p *ruleset.Port, pool ruleset.Pool, chains []string) []string {
	var out []string
	rest := uint64(0)
	for i, b := range pool.Backends {
		rest += uint64(b.Weight)
		if p.Affinity > 0 {
			chain := chains[i]
			out = append(out, fmt.Sprintf("-m recent --rcheck --seconds %d --reap --name %s %s %s", p.Affinity, string(d.names)+chain, d.recentMask(), d.to(chain)))
		}
	}
	for i, b := range pool.Backends {
		rule := d.to(chains[i])
		if share := uint64(b.Weight); share < rest {
			rule = "-m statistic --mode random --probability " + probabilityOf(share, rest) + " " + rule
		}
		rest -= uint64(b.Weight)
		out = append(out, rule)
	}
	return out
}

// probabilityOf returns part/whole in the kernel's unit of 2^-31.
func probabilityOf(part, whole uint64) string {
	const one = 1 << 31
	return fmt.Sprintf("%.11f", math.Round(one*float64(part)/float64(whole))/one)
}

func (d dialect) recentMask() string {
	if d.ipv6 {
		return "--mask ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff --rsource"
	}
	return "--mask 255.255.255.255 --rsource"
}

// backend returns the rules of the chain that sends to a backend.
func (d dialect) backend(p *ruleset.Port, b ruleset.Backend, chain string) []string {
	from := "-s " + hostText(b.Addr.Addr()) + " "
	if b.Cluster != "" {
		from = ""
	}
	recent := ""
	if p.Affinity > 0 {
		recent = "-m recent --set --name " + string(d.names) + chain + " " + d.recentMask() + " "
	}
	return []string{from + d.to(chainMarkMasq), fmt.Sprintf("-p %s %s-j DNAT --to-destination %s", protocolName(p.ID), recent, b.Addr)}
}
