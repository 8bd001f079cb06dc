package iptables

import (
	"strings"
	"testing"

	"federation/nodeagent/xtables"
)

// FuzzParseSave checks that whatever iptables-save prints, only our chains count as ours.
func FuzzParseSave(f *testing.F) {
	f.Add(ofOthers, true)
	f.Add("*nat\n:KUBE-SERVICES - [0:0]\n:KUBE-SVC-A - [0:0]\n-A PREROUTING -j KUBE-SERVICES\n-A KUBE-SVC-A -d 10.0.0.1/32 -j KUBE-SEP-B\nCOMMIT\n", false)
	f.Add(":\n-A \n-A  \n:FED-SERVICES", true)
	f.Fuzz(func(t *testing.T, text string, scope bool) {
		into := &saved{names: kube, chains: want{}, jumps: map[jump]int{}, late: map[jump]bool{}}
		if scope {
			into.names = federated
		}
		parseSave("nat", []byte(text), into)
		for p := range into.chains {
			if _, is := into.ownChain(string(into.names) + p.chain); !is || p.table != "nat" {
				t.Errorf("%q is taken for ours", p)
			}
		}
		for j := range into.jumps {
			if _, is := into.ownChain(j.chain); is {
				t.Errorf("%q is taken for a jump from elsewhere", j)
			}
		}
	})
}

// FuzzWords checks that any rule text is rejected with its name, or has both forms.
func FuzzWords(f *testing.F) {
	for _, rule := range []string{
		`-d 10.0.0.1/32 -p tcp -m comment --comment "default/web" -m tcp --dport 80 -j KUBE-SVC-A`, `! -s 10.0.0.0/8 -j KUBE-MARK-MASQ`, `-m statistic --mode random --probability 0.50000000000 -j A`,
		`-p tcp -m tcp -j DNAT --to-destination 10.0.0.2:8080`, `-m recent --name A --rcheck --seconds 10800 --reap --rsource -j A`, `-m mark ! --mark 0x4000/0x4000 -j RETURN`, `-j REJECT --reject-with icmp-port-unreachable`,
		`-d`, `"`, `-m`, `--dport 99999`, `-i`,
	} {
		f.Add(rule, false)
		f.Add(rule, true)
	}
	f.Fuzz(func(t *testing.T, rule string, ipv6 bool) {
		_, err := encode(rule, ipv6)
		legacy := entryOf(ipv6)(xtables.NewBuilder(ipv6), rule)
		for _, err := range []error{err, legacy} {
			if err != nil && !strings.Contains(err.Error(), "rule ") {
				t.Errorf("%q: %v does not name the rule", rule, err)
			}
		}
	})
}
