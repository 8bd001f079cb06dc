package iptables

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
)

// write is what iptables-restore is to be told: chains with their rules (nil: the chain goes), and jumps.
type write struct {
	chains want
	jumps  []jump
}

func (w write) empty() bool { return len(w.chains) == 0 && len(w.jumps) == 0 }

// text is the input of iptables-restore --noflush. A chain's line empties it, or makes it; what goes is taken away at
// the end, when no rule leads to it.
func (w write) text() []byte {
	var out bytes.Buffer
	places := slices.SortedFunc(maps.Keys(w.chains), func(x, y place) int {
		return cmp.Or(strings.Compare(x.table, y.table), strings.Compare(x.chain, y.chain))
	})
	for _, table := range []string{nat, filter} {
		var chains, rules, gone bytes.Buffer
		for _, p := range places {
			if p.table == table {
				line(&chains, ":", p.chain, " - [0:0]")
				for _, r := range w.chains[p] {
					line(&rules, "-A ", p.chain, " ", r)
				}
				if w.chains[p] == nil {
					line(&gone, "-X ", p.chain)
				}
			}
		}
		for _, j := range w.jumps {
			if j.table == table {
				line(&rules, "-I ", j.chain, " ", j.rule)
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

// saved is what iptables-save printed of us: our chains, and which of our jumps are there.
type saved struct {
	chains want
	jumps  map[jump]int
}

// parseSave reads what iptables-save printed of one table.
func parseSave(table string, text []byte, into *saved) {
	for l := range strings.Lines(string(text)) {
		l = strings.TrimSuffix(l, "\n")
		switch {
		case strings.HasPrefix(l, ":"):
			if chain, _, _ := strings.Cut(l[1:], " "); ours(chain) {
				into.chains[place{table, chain}] = []string{}
			}
		case strings.HasPrefix(l, "-A "):
			chain, rule, _ := strings.Cut(l[3:], " ")
			if ours(chain) {
				p := place{table, chain}
				into.chains[p] = append(into.chains[p], rule)
			} else {
				into.jumps[jump{table, chain, rule}]++
			}
		}
	}
}
