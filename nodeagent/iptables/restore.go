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

// maxPart is how many chains iptables-nft-restore gets at a time: beyond some thousands it takes more than linearly long.
const maxPart = 1000

// parts are writes that come to the same, one after the other, of about maxPart chains where that can be: first what is
// led to, then what leads there, at last what goes. So no rule leads nowhere in between. Pools come with their backends,
// as a rule that leads to a chain of an earlier part takes long, too.
func (w write) parts() []write {
	if len(w.chains) <= 2*maxPart {
		return []write{w}
	}
	const pools, trees, gone = 1, 4, 5
	levels := [gone + 1][]place{}
	for p, rules := range w.chains {
		switch at := level(p.chain); {
		case rules == nil:
			levels[gone] = append(levels[gone], p)
		case at != 0 || !strings.HasPrefix(p.chain, prefixBackend):
			levels[at] = append(levels[at], p)
		}
	}
	var out []write
	left := maps.Clone(w.chains)
	for at, places := range levels {
		part := write{chains: want{}}
		for _, p := range places {
			part.chains[p] = w.chains[p]
			delete(left, p)
			if at == pools {
				part.take(left, w.chains[p])
			}
			if len(part.chains) >= maxPart && at < trees { // trees lead to each other
				out, part = append(out, part), write{chains: want{}}
			}
		}
		if at == pools {
			maps.Copy(part.chains, backends(left))
		}
		if out = append(out, part); at == trees {
			out = append(out, write{jumps: w.jumps})
		}
	}
	return out
}

// take adds the chains that rules lead to.
func (w write) take(from want, rules []string) {
	for _, r := range rules {
		_, chain, _ := strings.Cut(r, "-j ")
		p := place{nat, chain}
		if to, there := from[p]; there && strings.HasPrefix(chain, prefixBackend) {
			w.chains[p] = to
			delete(from, p)
		}
	}
}

// backends are the chains of backends among those that are left: of pools that stay as they are.
func backends(left want) want {
	out := want{}
	for p, rules := range left {
		if rules != nil && strings.HasPrefix(p.chain, prefixBackend) {
			out[p] = rules
		}
	}
	return out
}

// level is how far above what it leads to a chain is; backends are with pools.
func level(chain string) int {
	levels := [][]string{{prefixCluster, prefixLocal}, {prefixExternal}, {prefixFirewall}, {prefixTree, chainServices, chainNodePorts}}
	for i, prefixes := range levels {
		for _, prefix := range prefixes {
			if strings.HasPrefix(chain, prefix) {
				return i + 1
			}
		}
	}
	return 0
}

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
