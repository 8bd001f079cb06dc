package iptables

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
)

// write is the input of iptables-restore, or the changes of legacy tables: chains with their rules (nil: the chain is
// deleted), and jumps.
type write struct {
	names
	chains want
	jumps  []jump // that are missing
	moved  []jump // deleted when these are added: those of them that come too late, and kube-proxy's beside them
	stale  []jump // not ours, and lead to chains that go; those of legacy tables go by themselves
}

func (w write) empty() bool { return len(w.chains)+len(w.jumps)+len(w.moved)+len(w.stale) == 0 }

// text returns the input of iptables-restore --noflush. A chain's line creates or empties it; deletions come at the
// end, when no rule leads to the chain.
func (w write) text() []byte {
	var out bytes.Buffer
	prefix := string(w.names)
	places := slices.SortedFunc(maps.Keys(w.chains), func(x, y place) int {
		return cmp.Or(strings.Compare(x.table, y.table), strings.Compare(x.chain, y.chain))
	})
	for _, table := range []string{nat, filter} {
		var chains, rules, gone bytes.Buffer
		for _, p := range places {
			if p.table == table {
				line(&chains, ":", prefix, p.chain, " - [0:0]")
				for _, r := range w.chains[p] {
					line(&rules, "-A ", prefix, p.chain, " ", r)
				}
				if w.chains[p] == nil {
					line(&gone, "-X ", prefix, p.chain)
				}
			}
		}
		for how, jumps := range [][]jump{slices.Concat(w.stale, w.moved), w.jumps} {
			for _, j := range jumps {
				if j.table == table {
					line(&rules, []string{"-D ", "-I "}[how], j.chain, " ", j.rule)
				}
			}
		}
		if chains.Len()+rules.Len() > 0 {
			line(&out, "*", table)
			for _, part := range []*bytes.Buffer{&chains, &rules, &gone} {
				out.Write(part.Bytes())
			}
			line(&out, "COMMIT")
		}
	}
	return out.Bytes()
}

func line(to *bytes.Buffer, parts ...string) {
	for _, p := range parts {
		to.WriteString(p)
	}
	to.WriteByte('\n')
}

// saved is what iptables-save printed of ours: our chains, and which of our jumps exist.
type saved struct {
	names
	chains want
	jumps  map[jump]int
	late   map[jump]bool // comes after kube-proxy's
}

// kubeProxys is the end of its rules that lead to Services. Those of the scope federated must come before.
const kubeProxys = "-j " + kube + chainServices + "\n"

// parseSave parses what iptables-save printed of one table.
func parseSave(table string, text []byte, into *saved) {
	proxied := map[string]bool{} // chains where kube-proxy's rule has been
	for l := range strings.Lines(string(text)) {
		proxys := strings.HasSuffix(l, kubeProxys)
		l = strings.TrimSuffix(l, "\n")
		switch {
		case strings.HasPrefix(l, ":"):
			name, _, _ := strings.Cut(l[1:], " ")
			if chain, is := into.ownChain(name); is {
				into.chains[place{table, chain}] = []string{}
			}
		case strings.HasPrefix(l, "-A "):
			name, rule, _ := strings.Cut(l[3:], " ")
			if chain, is := into.ownChain(name); is {
				p := place{table, chain}
				into.chains[p] = append(into.chains[p], rule)
				continue
			}
			j := jump{table, name, rule}
			into.jumps[j]++
			into.late[j] = proxied[name]
			proxied[name] = proxied[name] || proxys && into.names == federated
		}
	}
}
