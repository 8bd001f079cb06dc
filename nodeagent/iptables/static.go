package iptables

// Tables.
const (
	nat    = "nat"
	filter = "filter"
)

// jump is a rule in a chain that others own, too. It comes before theirs.
type jump struct{ table, chain, rule string }

var jumps = []jump{
	{nat, "PREROUTING", "-j " + chainServices},
	{nat, "OUTPUT", "-j " + chainServices},
	{nat, "POSTROUTING", "-j " + chainPostrouting},
	{filter, "INPUT", "-j " + chainNodePorts},
	{filter, "INPUT", "-j " + chainRefuse},
	{filter, "OUTPUT", "-j " + chainRefuse},
	{filter, "FORWARD", "-j " + chainForward},
	{filter, "FORWARD", "-j " + chainRefuse},
}

// fixed are the chains that no Service changes, by table.
func (d dialect) fixed() map[string]map[string][]string {
	unreachable, fully := "icmp-port-unreachable", ""
	if d.ipv6 {
		unreachable = "icmp6-port-unreachable"
	}
	if d.fully {
		fully = " --random-fully"
	}
	mark := func(m string) []string { return []string{"-j MARK --set-xmark " + m + "/" + m} }
	return map[string]map[string][]string{
		nat: {
			chainMarkMasq:   mark(masqueradeMark),
			chainMarkReject: mark(rejectMark),
			chainMarkDrop:   mark(dropMark),
			chainPostrouting: {
				"-m mark ! --mark " + masqueradeMark + "/" + masqueradeMark + " -j RETURN",
				"-j MARK --set-xmark " + masqueradeMark + "/0x0", // taken off again, as the packet may come by once more (xor)
				"-j MASQUERADE" + fully,
			},
		},
		filter: {
			// A TCP reset ends even a connect() that blocks at once; an ICMP message would be seen after a retransmission only.
			chainRefuse: {
				"-m mark --mark " + dropMark + "/" + dropMark + " -j DROP",
				"-p tcp -m mark --mark " + rejectMark + "/" + rejectMark + " -j REJECT --reject-with tcp-reset",
				"-m mark --mark " + rejectMark + "/" + rejectMark + " -j REJECT --reject-with " + unreachable,
			},
			chainForward: {
				"-m conntrack --ctstate INVALID -j DROP",
				"-m mark --mark " + masqueradeMark + "/" + masqueradeMark + " -j ACCEPT",
				"-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
			},
		},
	}
}

// clusterIPTail refuses what goes to a cluster IP and no port of its Service; ICMP is left alone.
func (d dialect) clusterIPTail(addr string) string {
	icmp := "icmp"
	if d.ipv6 {
		icmp = "ipv6-icmp"
	}
	return "-d " + addr + " ! -p " + icmp + " -j " + chainMarkReject
}

// servicesTail leads to the node ports, at the end of KUBE-SERVICES.
func (d dialect) servicesTail() []string {
	if len(d.node.NodePortAddrs) == 0 {
		loopback := "127.0.0.0/8"
		if d.ipv6 {
			loopback = "::1/128"
		}
		return []string{"! -d " + loopback + " -m addrtype --dst-type LOCAL -j " + chainNodePorts}
	}
	var out []string
	for _, a := range d.node.NodePortAddrs {
		if a.Is6() == d.ipv6 && !a.IsLoopback() {
			out = append(out, "-d "+host(a)+" -j "+chainNodePorts)
		}
	}
	return out
}
