package xtables

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// Edit is what is to become of a table, in rules as text.
type Edit struct {
	Chains map[string][]string // with all that they are to hold; nil: the chain goes, and the rules of others that lead to it
	First  map[string][]string // rules that come before all others of a chain
	Drop   map[string][]string // rules of a chain of which one goes, before those of First come

	Make func(b *Builder, rule string) error // adds a rule's entry
}

// Next is what a table is to become.
type Next struct {
	of     *Table
	out    Builder // after room for struct ipt_replace
	kept   []piece
	hooks  [hooks]uint32
	floors [hooks]uint32
	free   func()
}

// piece is what was taken over in one: where it was and is now, in bytes and in entries.
type piece struct{ old, at, size, oldEntry, entry, entries int }

// editor makes the next table.
type editor struct {
	*Table
	Edit
	*Next
	keeps   []int        // chains that stay, in their new order
	at      []int        // where each chain's rules begin now
	made    []string     // chains that are written anew, sorted
	madeAt  []int        // where their rules begin
	gone    map[int]bool // where the rules begin of chains that go
	touched map[int]bool // chains in which single rules come or go
	entered map[int]int  // where the rules of these begin now, by where they did: the first may be another
}

// Apply makes the next table: chains sorted by their names, as iptables has them, those that are not edited as they are. An
// edit that names what is not there is an error.
func (t *Table) Apply(e Edit) (*Next, error) {
	x := &editor{Table: t, Edit: e, at: make([]int, len(t.chains)), gone: map[int]bool{}, touched: map[int]bool{}, entered: map[int]int{}}
	room, err := anonymous(sizeReplace + len(t.blob) + e.atMost())
	if err != nil {
		return nil, err
	}
	x.Next = &Next{of: t, free: func() { release(room) }, out: Builder{layout: t.layout, from: sizeReplace, buf: room[:sizeReplace]}}
	if err := x.lay(); err != nil {
		x.Next.Close()
		return nil, err
	}
	return x.Next, nil
}

// Close frees what the next table is in.
func (n *Next) Close() { n.free() }

// atMost is how many bytes what is new will hardly exceed.
func (e Edit) atMost() (size int) {
	for _, chains := range []map[string][]string{e.Chains, e.First} {
		for _, rules := range chains {
			size += 512 + 768*len(rules)
		}
	}
	return size
}

func (x *editor) lay() error {
	if err := x.plan(); err != nil {
		return err
	}
	made := 0
	for _, i := range x.keeps {
		for ; made < len(x.made) && x.chains[i].hook < 0 && x.made[made] < string(x.chains[i].name); made++ {
			if err := x.chain(made); err != nil {
				return err
			}
		}
		if err := x.keep(i); err != nil {
			return err
		}
	}
	for ; made < len(x.made); made++ {
		if err := x.chain(made); err != nil {
			return err
		}
	}
	x.out.head(nameError)
	if err := x.relocate(); err != nil {
		return err
	}
	return x.resolve()
}

// plan finds the order of the chains that stay, and what is to be done to them.
func (x *editor) plan() error {
	for name, rules := range x.Chains {
		if rules != nil {
			x.made = append(x.made, name)
		}
	}
	slices.Sort(x.made)
	x.madeAt = make([]int, len(x.made))
	for i, c := range x.chains {
		if rules, edited := x.Chains[string(c.name)]; !edited {
			x.keeps = append(x.keeps, i)
		} else if rules == nil {
			x.gone[c.rules] = true
		}
	}
	slices.SortStableFunc(x.keeps, func(a, b int) int {
		return cmp.Or(cmp.Compare(x.rank(a), x.rank(b)), bytes.Compare(x.chains[a].name, x.chains[b].name))
	})
	return x.touch()
}

// touch finds the chains in which single rules come or go.
func (x *editor) touch() error {
	for _, chains := range []map[string][]string{x.First, x.Drop} {
		for name := range chains {
			i := slices.IndexFunc(x.chains, func(c chain) bool { return string(c.name) == name })
			if i < 0 {
				return fmt.Errorf("there is no chain %s", name)
			}
			x.touched[i] = true
		}
	}
	if len(x.gone) == 0 {
		return nil
	}
	for _, j := range x.jumps {
		if x.gone[int(j.to)] {
			i, _ := x.chainAt(int(j.at))
			x.touched[i] = true
		}
	}
	return nil
}

// rank keeps the chains that the kernel calls before the others, in their order.
func (x *editor) rank(i int) int {
	if x.chains[i].hook >= 0 {
		return i
	}
	return len(x.chains)
}

// chain writes one anew.
func (x *editor) chain(made int) error {
	name := x.made[made]
	x.out.head(name)
	x.madeAt[made] = x.out.size()
	if err := x.rules(x.Chains[name]); err != nil {
		return err
	}
	x.out.foot()
	return nil
}

func (x *editor) rules(rules []string) error {
	for _, r := range rules {
		if err := x.Make(&x.out, r); err != nil {
			return err
		}
	}
	return nil
}

// keep takes a chain over.
func (x *editor) keep(i int) error {
	c := x.chains[i]
	x.at[i] = x.out.size() + c.rules - c.from
	if c.hook >= 0 {
		x.hooks[c.hook] = uint32(x.at[i])
	}
	if !x.touched[i] {
		x.copy(c.from, c.next, c.first, c.count)
	} else if err := x.pick(i, c); err != nil {
		return err
	}
	if c.hook >= 0 {
		x.floors[c.hook] = uint32(x.out.size() - (c.next - c.foot))
	}
	return nil
}

// pick takes a chain over rule by rule, some of which go or come.
func (x *editor) pick(i int, c chain) error {
	n := c.first
	x.entered[c.rules] = x.at[i]
	if c.rules > c.from {
		x.copy(c.from, c.rules, n, 1)
		n++
	}
	if err := x.rules(x.First[string(c.name)]); err != nil {
		return err
	}
	drop := slices.Clone(x.Drop[string(c.name)])
	b := Builder{layout: x.Table.layout}
	for at, e := range x.entries(i) {
		r := x.rule(e)
		which := slices.IndexFunc(drop, func(text string) bool {
			b.Reset()
			return x.Make(&b, text) == nil && b.Same(r)
		})
		switch v, _, is := x.verdict(e); {
		case is && v >= 0 && x.gone[int(v)]:
		case which >= 0:
			drop = slices.Delete(drop, which, which+1)
		default:
			x.copy(at, at+len(e), n, 1)
		}
		n++
	}
	x.copy(c.foot, c.next, n, 1)
	if len(drop) > 0 {
		return fmt.Errorf("chain %s has no rule %q", c.name, drop)
	}
	return nil
}

// copy takes entries over as they are.
func (x *editor) copy(from, to, entry, count int) {
	at := x.out.size()
	x.out.buf = append(x.out.buf, x.blob[from:to]...)
	p := piece{from, at, to - from, entry, x.out.count, count}
	x.out.count += count
	if n := len(x.kept); n > 0 && x.kept[n-1].meets(p) {
		x.kept[n-1].size += p.size
		x.kept[n-1].entries += p.entries
		return
	}
	x.kept = append(x.kept, p)
}

// meets tells whether another comes right after a piece, now as before.
func (p piece) meets(q piece) bool { return p.old+p.size == q.old && p.at+p.size == q.at }

// relocate makes the jumps that were taken over lead to where chains are now.
func (x *editor) relocate() error {
	byOld := slices.SortedFunc(slices.Values(x.kept), func(a, b piece) int { return cmp.Compare(a.old, b.old) })
	n := 0
	for _, j := range x.jumps {
		at, to := int(j.at), int(j.to)
		for n < len(byOld) && byOld[n].old+byOld[n].size <= at {
			n++
		}
		if n == len(byOld) {
			break
		}
		p := byOld[n]
		if at < p.old {
			continue
		}
		e := entry(x.out.entries()[at-p.old+p.at:])
		_, size := x.offsets(e)
		now, err := x.now(byOld, to)
		if to == at+size { // a rule without a target goes on with the next
			now, err = at-p.old+p.at+size, nil
		}
		if err != nil {
			return err
		}
		x.lead(e, now)
	}
	return nil
}

func (l *layout) lead(e entry, to int) {
	target, _ := l.offsets(e)
	binary.NativeEndian.PutUint32(e[target+sizeHeader:], uint32(to))
}

// now is where an entry is that jumps lead to.
func (x *editor) now(byOld []piece, old int) (int, error) {
	if to, is := x.entered[old]; is {
		return to, nil
	}
	i, is := slices.BinarySearchFunc(byOld, old, func(p piece, old int) int { return cmp.Compare(p.old, old) })
	if !is {
		i--
	}
	if i >= 0 && old < byOld[i].old+byOld[i].size {
		return byOld[i].at + old - byOld[i].old, nil
	}
	if i, is := x.chainAt(old); is && x.chains[i].rules == old {
		if made, is := slices.BinarySearch(x.made, string(x.chains[i].name)); is {
			return x.madeAt[made], nil
		}
	}
	return 0, fmt.Errorf("a rule leads to %d, where no chain begins", old)
}

// resolve makes the jumps of new rules lead to their chains.
func (x *editor) resolve() error {
	called := slices.IndexFunc(x.keeps, func(i int) bool { return x.chains[i].hook < 0 })
	if called < 0 {
		called = len(x.keeps)
	}
	kept := x.keeps[called:] // by name
	for _, j := range x.out.jumps {
		to := 0
		if made, is := slices.BinarySearch(x.made, j.to); is {
			to = x.madeAt[made]
		} else if k, is := slices.BinarySearchFunc(kept, j.to, func(i int, name string) int {
			return strings.Compare(string(x.chains[i].name), name)
		}); is {
			to = x.at[kept[k]]
		} else {
			return fmt.Errorf("there is no chain %s to lead to", j.to)
		}
		x.lead(x.out.entries()[j.at:], to)
	}
	return nil
}
