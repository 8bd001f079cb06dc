package nftables

import (
	"fmt"
	"slices"
	"strings"

	"federation/nodeagent/ruleset"
)

// shape is all that the chains for a frontend depend on. Frontends of one shape share their chains.
type shape struct {
	pod, node, outside ruleset.Route
	slots              [len(ruleset.Pools)]int // in the pools that the routes lead to; 0: none leads there
	affinity           uint32
	ranges, nodePort   bool
}

func (t *table) shapeOf(s *state, f *ruleset.Frontend) shape {
	sh := shape{pod: f.FromPod, node: f.FromNode, outside: f.FromOutside,
		affinity: s.port.Affinity, ranges: len(f.SourceRanges) > 0, nodePort: !f.Key.Addr.IsValid()}
	if !t.pods.Known() {
		sh.pod = sh.outside
	}
	for i, to := range ruleset.Pools {
		if sh.uses(to) {
			sh.slots[i] = len(s.slots[i])
		}
	}
	return sh
}

func (s shape) routes() []ruleset.Route { return []ruleset.Route{s.pod, s.node, s.outside} }

func (s shape) uses(to ruleset.Target) bool {
	return s.pod.To == to || s.node.To == to || s.outside.To == to
}

// actsBeforeRouting reports whether there is anything to do before the packet is routed; refusals come later.
func (s shape) actsBeforeRouting() bool {
	return s.slots != [len(ruleset.Pools)]int{} || s.uses(ruleset.Drop)
}

// name returns that of the chain that packets of this shape go to.
func (s shape) name() string {
	if s.pod == s.node && s.node == s.outside && !s.pod.Masquerade && !s.ranges && s.pod.To != ruleset.Drop {
		return s.pick(s.pod.To)
	}
	var b strings.Builder
	b.WriteString("route")
	for _, r := range s.routes() {
		fmt.Fprintf(&b, "-%s", r.To)
		if r.Masquerade {
			b.WriteString(".masq")
		}
	}
	if s.ranges {
		b.WriteString("-ranges")
	}
	for _, n := range s.slots {
		fmt.Fprintf(&b, "-%d", n)
	}
	return b.String() + s.suffix()
}

// pick returns the name of the chain that chooses a slot of a pool.
func (s shape) pick(to ruleset.Target) string {
	return fmt.Sprintf("pick-%s-%d%s", to, s.slots[slices.Index(ruleset.Pools[:], to)], s.suffix())
}

// stick returns the name of the chain that remembers where a client was sent.
func (s shape) stick() string { return "stick" + s.suffix() }

func (s shape) suffix() (out string) {
	if s.affinity > 0 {
		out = fmt.Sprintf("-%ds", s.affinity)
	}
	if s.nodePort {
		out += "-nodeport"
	}
	return out
}

// chainsOf calls emit with the names of the shape's chains, and remembers how to make them.
func (t *table) chainsOf(s shape, emit func(name string)) {
	emitOnce := func(name string, rules func() []rule) {
		if t.recipes[name] == nil {
			t.recipes[name] = rules
		}
		emit(name)
	}
	for i, to := range ruleset.Pools {
		if s.uses(to) {
			emitOnce(s.pick(to), func() []rule { return t.pickRules(s, s.slots[i], firstSlot(i)) })
		}
	}
	if s.affinity > 0 {
		emitOnce(s.stick(), func() []rule { return t.stickRules(s) })
	}
	if name := s.name(); strings.HasPrefix(name, "route") {
		emitOnce(name, func() []rule { return t.routeRules(s) })
	}
}
