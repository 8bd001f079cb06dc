package nftables

import (
	"net/netip"

	"federation/nodeagent/ruleset"
)

// stateFrom puts a port's backends into the slots that they have in the kernel.
func (t *table) stateFrom(p *ruleset.Port, have *kernel) *state {
	s := &state{port: p}
	for i, to := range ruleset.Pools {
		s.slots[i] = slotsFor(p.Pool(to).Backends, t.slotsIn(p, have, firstSlot(i)))
	}
	return s
}

// slotsIn returns the slots of the port's first frontend that has some.
func (t *table) slotsIn(p *ruleset.Port, have *kernel, first int) (slots []netip.AddrPort) {
	for i := range p.Frontends {
		key := t.frontendKey(p.Frontends[i].Key)
		for {
			value, ok := have.elements[entry{endpoints, key + slotKey(first+len(slots))}]
			if !ok {
				break
			}
			slots = append(slots, parseBackend(value))
		}
		if len(slots) > 0 {
			break
		}
	}
	return slots
}

// isShared reports whether several frontends may have an entry.
func (e entry) isShared() bool {
	switch e.set {
	case "", clusterIPs, hairpin, remote, asked, taken, retried:
		return true
	}
	return false
}

// addUse adds n to the use count of an entry, and returns it.
func (t *table) addUse(e entry, n int) int {
	if !e.isShared() {
		return max(n, 0)
	}
	t.shared[e] += n
	left := t.shared[e]
	if left == 0 {
		delete(t.shared, e)
	}
	return left
}

// before and after of an entry that changes touch.
type before struct {
	there bool
	value string
}

// delta returns what the changes remove from a table, and what they add. An entry with a new value is in both.
func (w *Writer) delta(t *table, ipv6 bool, changes []ruleset.PortChange) (gone []entry, come []item) {
	was := map[entry]before{}
	touch := func(e entry, b before) {
		if _, ok := was[e]; !ok {
			was[e] = b
		}
	}
	will := map[entry]string{}
	for _, c := range changes {
		if c.Before != nil && c.Before.IPv6 == ipv6 && w.states[keyOf(c.Before)] != nil {
			t.entries(w.states[keyOf(c.Before)], func(e entry, v string) {
				touch(e, before{true, v})
				t.addUse(e, -1)
			})
		}
	}
	for _, c := range changes {
		if c.After != nil && c.After.IPv6 == ipv6 {
			s := w.nextState(c.After)
			t.entries(s, func(e entry, v string) {
				touch(e, before{e.isShared() && t.shared[e] > 0, v})
				t.addUse(e, 1)
				will[e] = v
			})
		} else if c.Before != nil && c.Before.IPv6 == ipv6 {
			delete(w.states, keyOf(c.Before))
		}
	}
	for e, b := range was {
		v, stays := will[e]
		if b.there && stays && v == b.value || b.there && t.shared[e] > 0 && !stays { // others still have it
			continue
		}
		if b.there {
			gone = append(gone, e)
		}
		if stays {
			come = append(come, item{e, v})
		}
	}
	return gone, come
}

// nextState returns the state of a port after a change: backends keep their slots.
func (w *Writer) nextState(p *ruleset.Port) *state {
	s := &state{port: p}
	var have state
	if old := w.states[keyOf(p)]; old != nil {
		have = *old
	}
	for i, to := range ruleset.Pools {
		s.slots[i] = slotsFor(p.Pool(to).Backends, have.slots[i])
	}
	w.states[keyOf(p)] = s
	return s
}

func (w *Writer) forgetRecipes() {
	for _, t := range w.tables {
		for name := range t.recipes {
			if t.shared[entry{"", name}] == 0 {
				delete(t.recipes, name)
			}
		}
	}
}
