package kernel

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"federation/controllers/loadbalancer/plan"
	"federation/nodeagent/nftables"
	"federation/nodeagent/ruleset"
)

// part is a target of a cluster that gets a share.
func part(cluster, address string, share float64) plan.SpreadPart {
	return plan.SpreadPart{Target: plan.Target{Cluster: cluster, Address: netip.MustParseAddrPort(address)}, Share: share}
}

func spread(udp bool, parts ...plan.SpreadPart) plan.Spread {
	return plan.Spread{Listener: plan.Listener{Port: 53, Pool: plan.PoolID{Namespace: "shop", Service: "dns", Port: 53, TCP: !udp, UDP: udp}}, Parts: parts}
}

// show formats ports: family, route, backends with weights, what is retried and lives on.
func show(ports map[portKey]*ruleset.Port) string {
	var out []string
	for k, p := range ports {
		line := fmt.Sprintf("%s v6=%t %s", k.protocol, k.ipv6, p.Frontends[0].FromOutside.To)
		for _, b := range p.Cluster.Backends {
			line += fmt.Sprintf(" %s=%d", b.Addr.Addr(), b.Weight)
		}
		if p.Retried {
			line += " retried"
		}
		for _, l := range p.Living {
			line += " living " + l.Addr().String()
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

func TestPorts(t *testing.T) {
	both := Settings{IPv4: true, IPv6: true}
	lost, out := part("c", "192.0.2.3:53", 0), part("c", "192.0.2.3:53", 0)
	lost.Lost, lost.Out, out.Out = true, true, true
	for name, c := range map[string]struct {
		Settings
		plan.Spread
		proxied bool
		want    string
	}{
		"even":                    {both, spread(false, part("a", "192.0.2.1:53", 0.5), part("b", "192.0.2.2:53", 0.5)), false, "TCP v6=false cluster 192.0.2.1=120 192.0.2.2=120 retried"},
		"thirds":                  {both, spread(false, part("a", "192.0.2.1:53", 1.0/3), part("b", "192.0.2.2:53", 2.0/3)), false, "TCP v6=false cluster 192.0.2.1=80 192.0.2.2=160 retried"},
		"sevenths add up":         {both, spread(false, part("a", "192.0.2.1:53", 1.0/7), part("b", "192.0.2.2:53", 2.0/7), part("c", "192.0.2.3:53", 4.0/7)), false, "TCP v6=false cluster 192.0.2.1=34 192.0.2.2=69 192.0.2.3=137 retried"},
		"next to nothing":         {both, spread(false, part("a", "192.0.2.1:53", 0.9999), part("b", "192.0.2.2:53", 0.0001)), false, "TCP v6=false cluster 192.0.2.1=240 192.0.2.2=1 retried"},
		"one stands by":           {both, spread(false, part("a", "192.0.2.1:53", 1), part("b", "192.0.2.2:53", 0)), false, "TCP v6=false cluster 192.0.2.1=240 retried"},
		"no other can take it":    {both, spread(false, part("a", "192.0.2.1:53", 1), out), false, "TCP v6=false cluster 192.0.2.1=240"},
		"an address of two":       {both, spread(false, part("a", "192.0.2.1:53", 0.5), part("b", "192.0.2.1:53", 0.5)), false, "TCP v6=false cluster 192.0.2.1=240 retried"},
		"families by cluster":     {both, spread(false, part("a", "192.0.2.1:53", 0.5), part("b", "192.0.2.2:53", 0.25), part("b", "[2001:db8::2]:53", 0.25)), false, "TCP v6=false cluster 192.0.2.1=120 192.0.2.2=120 retried; TCP v6=true cluster 2001:db8::2=240"},
		"not the family":          {both, spread(false, part("a", "192.0.2.1:53", 1), part("b", "[2001:db8::2]:53", 0)), false, "TCP v6=false cluster 192.0.2.1=240"},
		"PROXY protocol":          {both, spread(false, part("a", "192.0.2.1:53", 1)), true, ""},
		"by UDP":                  {both, spread(true, part("a", "192.0.2.1:53", 1), part("b", "192.0.2.2:53", 0), lost), true, "UDP v6=false cluster 192.0.2.1=240 living 192.0.2.1 living 192.0.2.2; UDP v6=true reject"},
		"nothing":                 {both, spread(false), false, ""},
		"IPv6 is not forwarded":   {Settings{IPv4: true}, spread(true, part("a", "[2001:db8::2]:53", 1)), false, "UDP v6=false reject"},
		"at an address of IPv6":   {Settings{IPv4: true, IPv6: true, Address: netip.MustParseAddr("2001:db8::1")}, spread(true, part("a", "[2001:db8::2]:53", 1)), false, "UDP v6=true cluster 2001:db8::2=240 living 2001:db8::2"},
		"at one of IPv4 that not": {Settings{IPv6: true, Address: netip.MustParseAddr("192.0.2.9")}, spread(true, part("a", "192.0.2.1:53", 1)), false, ""},
	} {
		c.ProxyProtocol = c.proxied
		if got := show(c.Ports([]plan.Spread{c.Spread})); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestWatched: what does not take connections is known by its counters, before a client sends its SYN again; what is slow is not.
func TestWatched(t *testing.T) {
	const tcp = corev1.ProtocolTCP
	type look struct {
		asked, taken, refused uint64
		want                  outcome
	}
	for name, looks := range map[string][]look{
		"takes all": {{2, 2, 0, outcome{asked: 2, taken: 2}}, {4, 4, 0, outcome{asked: 2, taken: 2}}, {4, 4, 0, outcome{}}, {4, 4, 0, outcome{}}, {4, 4, 0, outcome{}}, {4, 4, 0, outcome{}}},
		"takes them after half a second": {{1, 0, 0, outcome{asked: 1}}, {1, 0, 0, outcome{}}, {1, 0, 0, outcome{}}, {1, 1, 0, outcome{taken: 1}}, {1, 1, 0, outcome{}},
			{1, 1, 0, outcome{}}, {1, 1, 0, outcome{}}, {1, 1, 0, outcome{}}},
		"answers nothing": {{1, 0, 0, outcome{asked: 1}}, {2, 0, 0, outcome{asked: 1}}, {3, 0, 0, outcome{asked: 1}}, {4, 0, 0, outcome{asked: 1, undelivered: 4, unanswered: true}}, {4, 0, 0, outcome{}},
			{4, 0, 0, outcome{}}},
		"answers nothing any more": {{2, 2, 0, outcome{asked: 2, taken: 2}}, {4, 3, 0, outcome{asked: 2, taken: 1}}, {4, 3, 0, outcome{}}, {4, 3, 0, outcome{}}, {4, 3, 0, outcome{}},
			{4, 3, 0, outcome{undelivered: 1, unanswered: true}}},
		"refuses":            {{2, 0, 2, outcome{asked: 2, refused: 2, undelivered: 2}}, {2, 0, 2, outcome{}}, {2, 0, 2, outcome{}}, {2, 0, 2, outcome{}}, {2, 0, 2, outcome{}}},
		"is a backend again": {{9, 9, 0, outcome{asked: 9, taken: 9}}, {1, 1, 0, outcome{asked: 1, taken: 1}}},
	} {
		var w watched
		for i, l := range looks {
			if got := w.note(nftables.Count{Asked: l.asked, Taken: l.taken, Refused: l.refused}, tcp, time.Unix(0, 0).Add(time.Duration(i)*lookEvery)); got != l.want {
				t.Errorf("%s, look %d: %+v, want %+v", name, i, got, l.want)
			}
		}
	}
	var w watched
	for i := range 10 {
		if got := w.note(nftables.Count{Asked: 5}, corev1.ProtocolUDP, time.Unix(int64(i), 0)); got.undelivered > 0 {
			t.Errorf("datagrams that nobody need answer: %+v", got)
		}
	}
}
