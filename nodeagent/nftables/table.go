package nftables

import (
	"net/netip"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"federation/nodeagent/ruleset"
)

// TableName is that of both tables of the node agent.
const TableName = "federation"

// standInOf is the name of a table that serves while the one of a name is replaced.
func standInOf(name string) string { return name + "-meanwhile" }

// table is what we have in the kernel for one family.
type table struct {
	name      string
	family    uint8
	words     int // of an address, in registers
	pods      ruleset.Pods
	nodePorts []netip.Addr // where node ports are served
	allAddrs  bool         // node ports are served at all addresses but loopback
	federated bool         // beside another service proxy
	blackhole bool         // what comes from outside may have to be dropped, other than from inside
	balancer  bool         // of a load balancer
	inside    []netip.Prefix

	recipes map[string]func() []rule // how chains are made that Services use
	shared  map[entry]int            // how many times Services have what several may have
}

func newTable(name string, family uint8, node *ruleset.Node) *table {
	ipv6 := family == unix.NFPROTO_IPV6
	t := &table{name: name, family: family, words: 1, pods: node.Pods.OfFamily(ipv6), allAddrs: len(node.NodePortAddrs) == 0,
		federated: node.Federated, blackhole: node.Blackhole, balancer: node.Balancer, recipes: map[string]func() []rule{}, shared: map[entry]int{}}
	if ipv6 {
		t.words = 4
	}
	for _, a := range node.NodePortAddrs {
		if a.Is6() == ipv6 {
			t.nodePorts = append(t.nodePorts, a)
		}
	}
	for _, p := range node.Inside {
		if p.Addr().Is6() == ipv6 {
			t.inside = append(t.inside, p)
		}
	}
	return t
}

// anyAddress returns the address of what is not of one address.
func (t *table) anyAddress() []byte { return make([]byte, t.words*4) }

func (t *table) loopback() netip.Prefix {
	if t.family == unix.NFPROTO_IPV6 {
		return netip.MustParsePrefix("::1/128")
	}
	return netip.MustParsePrefix("127.0.0.0/8")
}

// chain is a chain and its rules; kind is "" for one that the kernel does not call.
type chain struct {
	name     string
	kind     string
	hook     uint32
	priority int32
	rules    []rule
}

// baseChains returns those that are there without any Service.
func (t *table) baseChains() []chain {
	const dnat, snat = -100, 100
	first := int32(dnat)
	if t.federated { // before the other proxy: what is translated already, the kernel shows no later chain of the kind nat
		first--
	}
	afterNAT := []rule{{"every packet", jumpExpr(expr.VerdictJump, "after-nat")}}
	dispatch := []rule{{"every connection", jumpExpr(expr.VerdictJump, "dispatch")}}
	chains := []chain{
		{name: "refuse", rules: t.refuseRules()},
		{name: "after-nat", rules: t.afterNATRules()},
		{name: "dispatch", rules: t.dispatchRules()},
		{"nat-prerouting", "nat", unix.NF_INET_PRE_ROUTING, first, dispatch},
		{"nat-output", "nat", unix.NF_INET_LOCAL_OUT, first, dispatch},
		// A reset that is made in a chain of the kind nat gets lost; these see the packet right after.
		{"filter-prerouting", "filter", unix.NF_INET_PRE_ROUTING, dnat + 1, afterNAT},
		{"filter-output", "filter", unix.NF_INET_LOCAL_OUT, dnat + 1, afterNAT},
		{"nat-postrouting", "nat", unix.NF_INET_POST_ROUTING, snat, t.postroutingRules()},
	}
	if t.balancer {
		chains = append(chains, chain{name: "answers", rules: balancer{t}.answersRules()})
	}
	if t.blackhole {
		chains = append(chains, chain{"outside-prerouting", "filter", unix.NF_INET_PRE_ROUTING, dnat - 20, t.outsideRules()})
	}
	return chains
}

func (t *table) dispatchRules() []rule {
	var rules []rule
	if t.balancer {
		rules = append(rules, rule{"the middle of a connection that is not known any more", join(matchProtocol(unix.IPPROTO_TCP), tcpFlags(fin|syn|rst|ack, syn, expr.CmpOpNeq), verdictExpr(expr.VerdictReturn))})
	}
	rules = append(rules, rule{"to a Service's address", join(t.frontendOf(0, false), verdict(services, 0))})
	for _, where := range t.nodePortAddresses() {
		rules = append(rules, rule{"to a node port", join(where, t.frontendOf(0, true), verdict(services, 0))})
	}
	return rules
}

// nodePortAddresses returns conditions, each for some addresses at which node ports are served.
func (t *table) nodePortAddresses() (out [][]expr.Any) {
	if t.allAddrs {
		return [][]expr.Any{join(isLocal(false), t.target(0), t.matchNetwork(t.loopback(), expr.CmpOpNeq))}
	}
	for _, a := range t.nodePorts {
		out = append(out, join(t.target(0), t.matchNetwork(netip.PrefixFrom(a, a.BitLen()), expr.CmpOpEq)))
	}
	return out
}

// afterNATRules handle new connections once their destination is settled: they remember clients with affinity, and
// refuse what goes to no backend.
func (t *table) afterNATRules() []rule {
	refuse := jumpExpr(expr.VerdictGoto, "refuse")
	state := []expr.Any{&expr.Ct{Key: expr.CtKeySTATE, Register: registerNumber(0)}}
	var rules []rule
	if t.balancer {
		rules = balancer{t}.answerRules()
	}
	rules = append(rules, rule{"connections that are there already", join(state, matchBits(expr.CtStateBitNEW, expr.CmpOpEq), verdictExpr(expr.VerdictReturn))})
	if t.balancer {
		rules = append(rules, rule{"a backend is asked", join(t.frontendOf(0, false), matchSet(asked, 0))})
	}
	rules = append(rules, []rule{
		{"to a Service with affinity", join(matchTranslated(), t.loadOriginalDestination(0, false), verdict(sticky, 0))},
		{"to a node port with affinity", join(matchTranslated(), t.loadOriginalDestination(0, true), verdict(sticky, 0))},
		{"a Service without a backend", join(t.frontendOf(0, false), matchSet(refused, 0), refuse)},
		{"a port that the Service does not have", join(t.target(0), matchSet(clusterIPs, 0), refuse)},
	}...)
	for _, where := range t.nodePortAddresses() {
		rules = append(rules, rule{"a node port without a backend", join(where, t.frontendOf(0, true), matchSet(refused, 0), refuse)})
	}
	return rules
}

// refuseRules refuse. A reset ends a connect() at once that an ICMP message would not reach while it holds its socket.
func (t *table) refuseRules() []rule {
	unreachable := &expr.Reject{Type: unix.NFT_REJECT_ICMP_UNREACH, Code: 3}
	if t.family == unix.NFPROTO_IPV6 {
		unreachable.Code = 4
	}
	return []rule{
		{"TCP", join(matchProtocol(unix.IPPROTO_TCP), []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_TCP_RST}})},
		{"UDP", join(matchProtocol(unix.IPPROTO_UDP), []expr.Any{unreachable})},
		{"SCTP", join(matchProtocol(unix.IPPROTO_SCTP), []expr.Any{unreachable})},
	}
}

// matchTranslated continues if a connection was sent to another address than it asked for.
func matchTranslated() []expr.Any {
	const dnatDone = 1 << 5 // IPS_DST_NAT
	return join([]expr.Any{&expr.Ct{Key: expr.CtKeySTATUS, Register: registerNumber(0)}}, matchBits(dnatDone, expr.CmpOpNeq))
}

func (t *table) postroutingRules() []rule {
	masquerade := []expr.Any{&expr.Masq{FullyRandom: true}}
	mark := []expr.Any{&expr.Meta{Key: expr.MetaKeyMARK, Register: registerNumber(0)}}
	return []rule{
		{"marked", join(mark, matchBits(t.mark(), expr.CmpOpNeq), t.setMark(0), masquerade)},
		{"back to where it comes from", join(matchTranslated(), t.source(0), t.target(t.words), matchSet(hairpin, 0), masquerade)},
		{"to another cluster", join(matchTranslated(), t.target(0), matchSet(remote, 0), masquerade)},
	}
}
