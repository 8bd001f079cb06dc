package nftables

import (
	"slices"

	"golang.org/x/sys/unix"
)

// differences writes what makes the kernel's table what is wanted.
func (x *transaction) differences(have *kernel, want map[entry]string, anew bool) {
	anew = anew || !x.fits(have)
	if anew && have.there {
		x.table(unix.NFT_MSG_DELTABLE, 0)
	}
	if anew {
		have = &kernel{}
	}
	if !have.there {
		x.first = x.batch // a table comes as a whole
		x.table(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE)
	}
	x.before(func() { x.addSets(have) })
	stale := x.repair(have, want)
	var gone []entry
	for e, v := range have.elements {
		if wanted, ok := want[e]; ok && wanted == v {
			delete(want, e)
		} else {
			gone = append(gone, e)
		}
	}
	x.write(gone, want)
	x.drop(stale)
	x.dropSets(have)
}

func (x *transaction) addSets(have *kernel) {
	for _, d := range definitions(x.t.family) {
		if _, ok := have.sets[d.name]; !ok {
			x.addSet(d)
		}
	}
}

// fits tells whether what is there of sets and base chains can stay.
func (x *transaction) fits(have *kernel) bool {
	for _, d := range definitions(x.t.family) {
		if _, ok := have.sets[d.name]; ok && !have.same(d) {
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

// repair makes base chains, and rewrites chains that have other rules than they should. It takes from want the chains that
// are there, and returns those that nobody wants.
func (x *transaction) repair(have *kernel, want map[entry]string) (stale []entry) {
	base := x.t.baseChains()
	for _, c := range base {
		if have.chains[c.name] == nil {
			x.addChain(c)
		}
	}
	wanted := map[string]bool{}
	for e := range want {
		if e.set == "" && have.chains[e.key] != nil {
			wanted[e.key] = true
			base = append(base, chain{name: e.key, rules: x.t.recipes[e.key]()})
			delete(want, e)
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
		if !slices.ContainsFunc(definitions(x.t.family), func(d definition) bool { return d.name == name }) {
			x.deleteSet(name)
		}
	}
}
