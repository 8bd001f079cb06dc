package xtables

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// Edit has the changes of a table, with rules as text.
type Edit struct {
	Chains map[string][]string // with all their rules; nil: the chain is deleted, and foreign rules that lead to it
	First  map[string][]string // rules to put before all others of a chain
	Drop   map[string][]string // rules of a chain of which one is deleted, before those of First are added

	Make func(b *Builder, rule string) error // adds a rule's entry
}

// editor lays out the next table: pieces of the old one and new ones.
type editor struct {
	*Table
	Edit
	new    *Builder
	space  []byte // that it writes into, after room for struct ipt_replace
	pieces []piece
	size   int // of the next table so far, in bytes and in entries
	count  int

	keeps   []int32         // chains that stay, in their new order
	at      []uint32        // where each chain's rules begin now
	made    []string        // rewritten chains, sorted
	madeAt  []int           // where their rules begin
	gone    map[uint32]bool // where the rules begin of chains that go
	touched map[int]bool    // chains in which single rules come or go
	entered map[int]int     // where the rules of these begin now, by where they did: the first may be another

	hooks, floors [hooks]uint32
}

// piece is some consecutive entries: where they were (in the old table or, if new, in the Builder) and are now, in
// bytes and in entries.
type piece struct {
	made                   bool
	old, at, size          int
	oldEntry, entry, count int
}

// Apply makes the next table: chains sorted by name, as in iptables, and unchanged unless edited. An edit of what does
// not exist is an error. It consumes the table: if there is room, the next one is made in the same memory.
func (t *Table) Apply(e Edit) (*Next, error) {
	space, err := mapAnonymous(sizeReplace + e.atMost() + len(t.blob))
	if err != nil {
		return nil, err
	}
	x := &editor{Table: t, Edit: e, new: &Builder{layout: t.layout, buf: space[sizeReplace:sizeReplace]}, space: space,
		at: make([]uint32, len(t.chains)), gone: map[uint32]bool{}, touched: map[int]bool{}, entered: map[int]int{}}
	n, err := x.next()
	if err != nil {
		release(space)
		return nil, err
	}
	return n, nil
}

func (x *editor) next() (*Next, error) {
	if err := x.plan(); err != nil {
		return nil, err
	}
	if err := x.layOut(); err != nil {
		return nil, err
	}
	if err := x.resolve(); err != nil {
		return nil, err
	}
	return x.place()
}

// atMost returns an estimate of the new content's size in bytes.
func (e Edit) atMost() int {
	size := 512
	for _, chains := range []map[string][]string{e.Chains, e.First} {
		for _, rules := range chains {
			size += 512 + 768*len(rules)
		}
	}
	return size
}

// plan finds the order of the kept chains, and their changes.
func (x *editor) plan() error {
	for name, rules := range x.Chains {
		if rules != nil {
			x.made = append(x.made, name)
		}
	}
	slices.Sort(x.made)
	x.keeps = make([]int32, 0, len(x.chains))
	x.madeAt = make([]int, len(x.made))
	for i, c := range x.chains {
		if rules, edited := x.Chains[string(x.name(i))]; !edited {
			x.keeps = append(x.keeps, int32(i))
		} else if rules == nil {
			x.gone[c.rules] = true
		}
	}
	slices.SortStableFunc(x.keeps, func(a, b int32) int {
		return cmp.Or(cmp.Compare(x.rank(int(a)), x.rank(int(b))), bytes.Compare(x.name(int(a)), x.name(int(b))))
	})
	return x.findTouched()
}

// findTouched finds the chains in which single rules come or go.
func (x *editor) findTouched() error {
	for _, chains := range []map[string][]string{x.First, x.Drop} {
		for name := range chains {
			i := 0
			for i < len(x.chains) && string(x.name(i)) != name {
				i++
			}
			if i == len(x.chains) {
				return fmt.Errorf("there is no chain %s", name)
			}
			x.touched[i] = true
		}
	}
	if len(x.gone) == 0 {
		return nil
	}
	for _, j := range x.jumps {
		if x.gone[j.to] {
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

// layOut puts one chain after the other.
func (x *editor) layOut() error {
	made := 0
	for _, i := range x.keeps {
		for ; made < len(x.made) && x.chains[i].hook < 0 && x.made[made] < string(x.name(int(i))); made++ {
			if err := x.chain(made); err != nil {
				return err
			}
		}
		if err := x.keep(int(i)); err != nil {
			return err
		}
	}
	for ; made < len(x.made); made++ {
		if err := x.chain(made); err != nil {
			return err
		}
	}
	return x.add(func() error { x.new.beginChain(nameError); return nil })
}

// chain lays one that is new.
func (x *editor) chain(made int) error {
	name := x.made[made]
	return x.add(func() error {
		before := x.new.size()
		x.new.beginChain(name)
		x.madeAt[made] = x.size + x.new.size() - before
		if err := x.rules(x.Chains[name]); err != nil {
			return err
		}
		x.new.endChain()
		return nil
	})
}

func (x *editor) rules(rules []string) error {
	for _, r := range rules {
		if err := x.Make(x.new, r); err != nil {
			return err
		}
	}
	return nil
}

// keep lays one that stays.
func (x *editor) keep(i int) error {
	c := x.chains[i]
	x.at[i] = uint32(x.size) + c.rules - c.from
	if !x.touched[i] {
		x.copy(int(c.from), int(c.next), int(c.first), int(c.count))
	} else if err := x.layOutRules(i, c); err != nil {
		return err
	}
	if c.hook >= 0 {
		x.hooks[c.hook], x.floors[c.hook] = x.at[i], uint32(x.size)-(c.next-c.foot)
	}
	return nil
}

// layOutRules lays out a kept chain rule by rule, some of which are deleted or added.
func (x *editor) layOutRules(i int, c chain) error {
	n, name := int(c.first), string(x.name(i))
	x.entered[int(c.rules)] = int(x.at[i])
	if c.rules > c.from {
		x.copy(int(c.from), int(c.rules), n, 1)
		n++
	}
	if err := x.add(func() error { return x.rules(x.First[name]) }); err != nil {
		return err
	}
	drop := slices.Clone(x.Drop[name])
	b := Builder{layout: x.layout}
	for at, e := range x.entries(i) {
		r := x.rule(e)
		which := slices.IndexFunc(drop, func(text string) bool {
			b.Reset()
			return x.Make(&b, text) == nil && b.Same(r)
		})
		switch v, _, is := x.verdict(e); {
		case is && v >= 0 && x.gone[uint32(v)]:
		case which >= 0:
			drop = slices.Delete(drop, which, which+1)
		default:
			x.copy(at, at+len(e), n, 1)
		}
		n++
	}
	x.copy(int(c.foot), int(c.next), n, 1)
	if len(drop) > 0 {
		return fmt.Errorf("chain %s has no rule %q", name, drop)
	}
	return nil
}

// copy lays entries of the old table.
func (x *editor) copy(from, to, entry, count int) {
	x.addPiece(piece{old: from, size: to - from, oldEntry: entry, count: count})
}

// add lays out new entries.
func (x *editor) add(do func() error) error {
	from, entry := x.new.size(), x.new.count
	err := do()
	x.addPiece(piece{made: true, old: from, size: x.new.size() - from, oldEntry: entry, count: x.new.count - entry})
	return err
}

func (x *editor) addPiece(p piece) {
	p.at, p.entry = x.size, x.count
	x.size += p.size
	x.count += p.count
	if n := len(x.pieces); n > 0 && x.pieces[n-1].made == p.made && x.pieces[n-1].old+x.pieces[n-1].size == p.old {
		x.pieces[n-1].size += p.size
		x.pieces[n-1].count += p.count
		return
	}
	x.pieces = append(x.pieces, p)
}
