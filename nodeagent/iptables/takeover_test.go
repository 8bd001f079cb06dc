package iptables

import (
	"regexp"
	"strings"
	"testing"

	"federation/nodeagent/nettest"
)

// leftByKubeProxy is what kube-proxy 1.36 leaves when it ends, with a Service that has no endpoints and one with source ranges;
// and rules of others that lead to its chains.
const leftByKubeProxy = `*filter
:KUBE-EXTERNAL-SERVICES - [0:0]
:KUBE-FORWARD - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-PROXY-FIREWALL - [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-FIREWALL - [0:0]
-A INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
-A INPUT -m comment --comment "kubernetes health check service ports" -j KUBE-NODEPORTS
-A INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES
-A FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES
-A OUTPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
-A OUTPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -j KUBE-FIREWALL
-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP
-A KUBE-SERVICES -p tcp -m comment --comment "default/none has no endpoints" -m tcp --dport 80 -j REJECT --reject-with icmp-port-unreachable
-A KUBE-EXTERNAL-SERVICES -p tcp -m comment --comment "default/none has no endpoints" -m tcp --dport 30000 -j REJECT --reject-with icmp-port-unreachable
-A KUBE-PROXY-FIREWALL -p tcp -m comment --comment "default/ranges traffic not accepted" -m tcp --dport 443 -j DROP
COMMIT
*nat
:KUBE-MARK-MASQ - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]
:OTHERS - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
-A OTHERS -p udp -j KUBE-MARK-MASQ
-A KUBE-SERVICES -p tcp -j KUBE-SVC-AAAAAAAAAAAAAAAA
COMMIT
`

// kube-proxy's chains that are not ours are deleted with the rules that lead there; foreign rules stay.
func TestAfterKubeProxy(t *testing.T) {
	eachBackend(t, func(t *testing.T, node *nettest.Node, b Backend) {
		restores, again := 0, 0
		w := writer(t, b, &restores)
		for _, f := range w.families {
			text := leftByKubeProxy
			if f.ipv6 {
				text = strings.ReplaceAll(text, "icmp-port", "icmp6-port")
			}
			in(t, node, func() error { return f.run(t.Context(), "restore", []byte(text), "--noflush") })
		}
		in(t, node, func() error { return w.Sync(t.Context(), testNode(), testPorts(4)) })
		for _, f := range w.families {
			var saved string
			in(t, node, func() error {
				out, err := f.output(t.Context(), "save", nil)
				saved = string(out)
				return err
			})
			_, filtered, _ := strings.Cut(saved, "*filter\n")
			filtered, _, _ = strings.Cut(filtered, "COMMIT")
			for _, gone := range []string{"KUBE-SERVICES", "KUBE-EXTERNAL-SERVICES", "KUBE-PROXY-FIREWALL"} {
				if strings.Contains(filtered, gone) {
					t.Errorf("%s is there still:\n%s", gone, filtered)
				}
			}
			for _, kept := range []string{"-A OUTPUT -j KUBE-FIREWALL\n", "-A OTHERS -p udp -j KUBE-MARK-MASQ\n"} {
				if !strings.Contains(saved, kept) {
					t.Errorf("%q is gone:\n%s", kept, saved)
				}
			}
			for _, once := range []string{"-A PREROUTING -j KUBE-SERVICES\n", "-A OUTPUT -j KUBE-SERVICES\n", "-A POSTROUTING -j KUBE-POSTROUTING\n", "-A FORWARD -j KUBE-FORWARD\n", "-A INPUT -j KUBE-NODEPORTS\n"} {
				_, jump, _ := strings.Cut(once, " -j ")
				chain, _, _ := strings.Cut(once, " -j ")
				if strings.Count(saved, once) != 1 || len(regexp.MustCompile(chain+".* -j "+jump).FindAllString(saved, -1)) != 1 {
					t.Errorf("not only %q is there:\n%s", once, saved)
				}
			}
			if strings.Contains(saved, "AAAAAAAAAAAAAAAA") {
				t.Errorf("a Service of kube-proxy's is there still:\n%s", saved)
			}
		}
		in(t, node, func() error { return writer(t, b, &again).Sync(t.Context(), testNode(), testPorts(4)) })
		if again != 0 {
			t.Errorf("a second Writer restored %d times", again)
		}
	})
}
