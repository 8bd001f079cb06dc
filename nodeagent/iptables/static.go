package iptables

// Tables.
const (
	nat    = "nat"
	filter = "filter"
)

// jump is a rule in a chain that others also use. It comes before theirs.
type jump struct{ table, chain, rule string }

func (n names) jumps() []jump {
	return []jump{
		{nat, "PREROUTING", n.to(chainServices)},
		{nat, "OUTPUT", n.to(chainServices)},
		{nat, "POSTROUTING", n.to(chainPostrouting)},
		{filter, "INPUT", n.to(chainNodePorts)},
		{filter, "INPUT", n.to(chainRefuse)},
		{filter, "OUTPUT", n.to(chainRefuse)},
		{filter, "FORWARD", n.to(chainForward)},
		{filter, "FORWARD", n.to(chainRefuse)},
	}
}

// kubeProxyJumps returns kube-proxy's jumps to chains that we use, too, for when kube-proxy is gone: after ours they lead
// nowhere else.
func (n names) kubeProxyJumps() []jump {
	if n != kube {
		return nil
	}
	rule := func(comment, chain string) string {
		return `-m comment --comment "kubernetes ` + comment + `" ` + n.to(chain)
	}
	return []jump{
		{nat, "PREROUTING", rule("service portals", chainServices)},
		{nat, "OUTPUT", rule("service portals", chainServices)},
		{nat, "POSTROUTING", rule("postrouting rules", chainPostrouting)},
		{filter, "INPUT", rule("health check service ports", chainNodePorts)},
		{filter, "FORWARD", rule("forwarding rules", chainForward)},
	}
}

// fixed returns the chains that no Service changes, by table.
func (d dialect) fixed() map[string]map[string][]string {
	unreachable, fully := "icmp-port-unreachable", ""
	if d.ipv6 {
		unreachable = "icmp6-port-unreachable"
	}
	if d.fully {
		fully = " --random-fully"
	}
	set := func(m string) []string { return []string{"-j MARK --set-xmark " + m + "/" + m} }
	has := func(m string) string { return "-m mark --mark " + m + "/" + m }
	m := d.marks()
	return map[string]map[string][]string{
		nat: {
			chainMarkMasq:   set(m.masquerade),
			chainMarkReject: set(m.reject),
			chainMarkDrop:   set(m.drop),
			chainPostrouting: {
				"-m mark ! --mark " + m.masquerade + "/" + m.masquerade + " -j RETURN",
				"-j MARK --set-xmark " + m.masquerade + "/0x0", // cleared again, because the packet may come by once more (xor)
				"-j MASQUERADE" + fully,
			},
		},
		filter: {
			// A TCP reset ends even a connect() that blocks at once; an ICMP message would be seen after a retransmission only.
			chainRefuse: {
				has(m.drop) + " -j DROP",
				"-p tcp " + has(m.reject) + " -j REJECT --reject-with tcp-reset",
				has(m.reject) + " -j REJECT --reject-with " + unreachable,
			},
			chainForward: {
				"-m conntrack --ctstate INVALID -j DROP",
				has(m.masquerade) + " -j ACCEPT",
				"-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
			},
		},
	}
}

// aloneTail refuses packets to a Service's own address at none of its ports; ICMP is left alone.
func (d dialect) aloneTail(addr string) string {
	icmp := "icmp"
	if d.ipv6 {
		icmp = "ipv6-icmp"
	}
	return "-d " + addr + " ! -p " + icmp + " " + d.to(chainMarkReject)
}

// servicesTail leads to the node ports, at the end of chainServices.
func (d dialect) servicesTail() []string {
	if len(d.node.NodePortAddrs) == 0 {
		loopback := "127.0.0.0/8"
		if d.ipv6 {
			loopback = "::1/128"
		}
		return []string{"! -d " + loopback + " -m addrtype --dst-type LOCAL " + d.to(chainNodePorts)}
	}
	var out []string
	for _, a := range d.node.NodePortAddrs {
		if a.Is6() == d.ipv6 && !a.IsLoopback() {
			out = append(out, "-d "+hostText(a)+" "+d.to(chainNodePorts))
		}
	}
	return out
}
