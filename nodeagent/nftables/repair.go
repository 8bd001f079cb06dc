package nftables

import (
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"federation/nodeagent/nfnetlink"
)

// differences writes what is needed to make the kernel's table as wanted.
func (x *transaction) differences(have *kernel, want []item, replace bool) {
	replace = replace || !x.canKeepSets(have)
	replaced := replace && have.there
	if replaced {
		x.serveMeanwhile(want)
		x.table(unix.NFT_MSG_DELTABLE, 0)
	}
	if replaced || have.standIn {
		x.standIn(&x.steps.last).remove()
	}
	if replace {
		have = &kernel{}
	}
	if !have.there {
		x.first = x.batch // a table comes as a whole
		x.table(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE)
	}
	x.withStep(x.first, func() { x.addSets(have) })
	stale := x.repair(have, want)
	come := slices.DeleteFunc(want, func(i item) bool { return have.takeElement(i) })
	x.write(slices.Collect(maps.Keys(have.elements)), come)
	x.dropChains(stale)
	x.dropSets(have)
}

// serveMeanwhile creates a table that serves while this one is replaced: a packet in transit through a table that is
// deleted finds nothing in it, and the next table has what it needs. It stays if an agent ends before it deletes it.
func (x *transaction) serveMeanwhile(want []item) {
	in := x.standIn(&x.steps.standIn)
	in.remove()
	in.differences(&kernel{}, want, false)
	x.err = in.err
}

func (x *transaction) standIn(step *nfnetlink.Batch) *transaction {
	t := *x.t
	t.name = standInOf(t.name)
	return &transaction{t: &t, steps: x.steps, batch: step, first: step}
}

func (x *transaction) addSets(have *kernel) {
	for _, d := range x.t.definitions() {
		if _, ok := have.sets[d.name]; !ok {
			x.addSet(d)
		}
	}
}

// canKeepSets reports whether the present sets and base chains can stay.
func (x *transaction) canKeepSets(have *kernel) bool {
	for _, d := range x.t.definitions() {
		if _, ok := have.sets[d.name]; ok && !have.hasDefinition(d) {
			return false
		}
	}
	for _, c := range x.t.baseChains() {
		if k := have.chains[c.name]; k != nil && (k.kind != c.kind || k.hook != c.hook || k.priority != c.priority) {
			return false
		}
	}
	return true
}

// takeElement reports whether the kernel has an element or chain, and removes it from the present elements, so that the
// unwanted ones remain.
func (k *kernel) takeElement(i item) bool {
	if i.set == "" {
		return k.chains[i.key] != nil
	}
	value, there := k.elements[i.entry]
	if there = there && value == i.value; there {
		delete(k.elements, i.entry)
	}
	return there
}

// repair creates base chains, and rewrites chains with wrong rules. It returns the unwanted chains.
func (x *transaction) repair(have *kernel, want []item) (stale []entry) {
	base := x.t.baseChains()
	for _, c := range base {
		if have.chains[c.name] == nil {
			x.addChain(c)
		}
	}
	wanted := map[string]bool{}
	for _, i := range want {
		if i.set == "" && have.chains[i.key] != nil {
			wanted[i.key] = true
			base = append(base, chain{name: i.key, rules: x.t.recipes[i.key]()})
		}
	}
	for _, c := range base {
		wanted[c.name] = true
		x.rewrite(c, have.chains[c.name])
	}
	for name := range have.chains {
		if !wanted[name] {
			stale = append(stale, entry{"", name})
		}
	}
	return stale
}

// rewrite gives a chain its rules, unless it has them.
func (x *transaction) rewrite(c chain, have *kernelChain) {
	rules := make([]encoded, len(c.rules))
	comments := make([]string, len(c.rules))
	for i, r := range c.rules {
		e, err := r.encode(x.t.family)
		if err != nil {
			x.err = err
			return
		}
		rules[i], comments[i] = e, e.comment
	}
	if have != nil && slices.Equal(have.comments, comments) {
		return
	}
	if have != nil && len(have.comments) > 0 {
		x.flush(c.name)
	}
	for _, e := range rules {
		x.addRule(c.name, e)
	}
}

func (x *transaction) dropSets(have *kernel) {
	for name := range have.sets {
		if !slices.ContainsFunc(x.t.definitions(), func(d definition) bool { return d.name == name }) {
			x.deleteSet(name)
		}
	}
}
