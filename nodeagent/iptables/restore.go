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
	names
	chains want
	jumps  []jump // that are missing
	moved  []jump // of these those that are there, but come too late
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
		part := write{names: w.names, chains: want{}}
		for _, p := range places {
			part.chains[p] = w.chains[p]
			delete(left, p)
			if at == pools {
				part.take(left, w.chains[p])
			}
			if len(part.chains) >= maxPart && at < trees { // trees lead to each other
				out, part = append(out, part), write{names: w.names, chains: want{}}
			}
		}
		if at == pools {
			maps.Copy(part.chains, backends(left))
		}
		if out = append(out, part); at == trees {
			out = append(out, write{names: w.names, jumps: w.jumps, moved: w.moved})
		}
	}
	return out
}

// take adds the chains that rules lead to.
func (w write) take(from want, rules []string) {
	for _, r := range rules {
		p := place{nat, w.target(r)}
		if to, there := from[p]; there && strings.HasPrefix(p.chain, prefixBackend) {
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
	levels := [][]string{{prefixCluster, prefixOwn, prefixLocal}, {prefixExternal}, {prefixFirewall}, {prefixTree, chainServices, chainNodePorts}}
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
		for how, jumps := range [][]jump{w.moved, w.jumps} {
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

// saved is what iptables-save printed of us: our chains, and which of our jumps are there.
type saved struct {
	names
	chains want
	jumps  map[jump]int
	late   map[jump]bool // comes after kube-proxy's
}

// kubeProxys is how its rules end that lead to Services. Those of the scope federated must come before.
const kubeProxys = "-j " + kube + chainServices + "\n"

// parseSave reads what iptables-save printed of one table.
func parseSave(table string, text []byte, into *saved) {
	proxied := map[string]bool{} // chains where kube-proxy's rule has been
	for l := range strings.Lines(string(text)) {
		proxys := strings.HasSuffix(l, kubeProxys)
		l = strings.TrimSuffix(l, "\n")
		switch {
		case strings.HasPrefix(l, ":"):
			name, _, _ := strings.Cut(l[1:], " ")
			if chain, is := into.ours(name); is {
				into.chains[place{table, chain}] = []string{}
			}
		case strings.HasPrefix(l, "-A "):
			name, rule, _ := strings.Cut(l[3:], " ")
			if chain, is := into.ours(name); is {
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
