package nftables

import (
	"slices"
	"strings"

	"federation/nodeagent/nfnetlink"
	"federation/nodeagent/ruleset"
)

// steps are consecutive transactions. A packet that began before a transaction sees the old rules, but the new
// elements: of new chains no rules yet, and nothing of what was deleted. So chains come first, before anything leads to
// them, and what such a packet may fall back on goes last. While a table is replaced a stand-in serves.
type steps struct{ standIn, chains, rest, last nfnetlink.Batch }

func (s *steps) allBatches() []*nfnetlink.Batch {
	return []*nfnetlink.Batch{&s.standIn, &s.chains, &s.rest, &s.last}
}

func (s *steps) bytes() (n int) {
	for _, b := range s.allBatches() {
		n += b.Total()
	}
	return n
}

// withStep has f write into another of the steps.
func (x *transaction) withStep(step *nfnetlink.Batch, f func()) {
	x.closeList()
	now := x.batch
	x.batch = step
	f()
	x.closeList()
	x.batch = now
}

// write orders deletions and additions as the kernel needs them: chains before what leads to them, and after it when
// they are deleted.
func (x *transaction) write(gone []entry, come []item) {
	chains, elements := splitChains(come)
	x.withStep(x.first, func() { x.addChains(chains) })
	goneChains, goneElements := splitChains(gone)
	fallback := fallbackSlots(goneElements, elements)
	for _, e := range goneElements {
		if !fallback[e] {
			x.delete(e)
		}
	}
	for _, i := range elements {
		x.add(i)
	}
	x.dropChains(goneChains)
	x.withStep(&x.steps.last, func() {
		for e := range fallback {
			x.delete(e)
		}
	})
}

// fallbackSlots returns, of the deletions, the first slots of pools whose frontends now lead elsewhere. A packet in transit
// to such a pool has nowhere else to go.
func fallbackSlots(gone []entry, come []item) map[entry]bool {
	out := map[entry]bool{}
	if len(gone) == 0 {
		return out
	}
	comes := map[entry]bool{}
	for _, i := range come {
		comes[i.entry] = true
	}
	for _, e := range gone {
		if e.set == endpoints && !comes[e] {
			frontend, slot := e.key[:len(e.key)-4], e.key[len(e.key)-4:]
			for pool := range ruleset.Pools {
				if slot == slotKey(firstSlot(pool)) && comes[entry{services, frontend}] {
					out[e] = true
				}
			}
		}
	}
	return out
}

// addChains makes chains that may lead to each other.
func (x *transaction) addChains(chains []item) {
	for _, i := range chains {
		x.addChain(chain{name: i.key})
	}
	for _, i := range chains {
		x.addRules(i.key, x.t.recipes[i.key]())
	}
}

// dropChains takes chains away that may lead to each other.
func (x *transaction) dropChains(chains []entry) {
	for _, e := range chains {
		x.flush(e.key)
	}
	for _, e := range chains {
		x.deleteChain(e.key)
	}
	x.closeList()
}

// splitChains sorts by set, so that what is of one set is in a row; chains are apart.
func splitChains[E interface{ in() string }](all []E) (chains, elements []E) {
	slices.SortFunc(all, func(a, b E) int { return strings.Compare(a.in(), b.in()) })
	n := 0
	for n < len(all) && all[n].in() == "" {
		n++
	}
	return all[:n], all[n:]
}
