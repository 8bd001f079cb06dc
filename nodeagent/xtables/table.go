package xtables

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"unsafe"
)

// Table is what the kernel held when it was read.
type Table struct {
	*layout
	info   info
	blob   []byte  // entries
	room   []byte  // in which they are, after room for struct ipt_replace; or none
	chains []chain // as they come: those that the kernel calls first
	jumps  []jump
	aside  []byte // in which these are
}

// info is struct ipt_getinfo, and that of IPv6.
type info struct {
	name          [32]byte
	validHooks    uint32
	hooks, floors [hooks]uint32 // where the chains begin that the kernel calls, and their policies
	entries, size uint32
}

// chain is one, by offsets: of its first entry, its first rule, its policy or end, and what comes after it.
type chain struct {
	hook                    int32 // -1: the kernel does not call it
	from, rules, foot, next uint32
	first, count            uint32 // of its entries
}

// jump is an entry that continues at another.
type jump struct{ at, to uint32 }

// parse finds the chains in the kernel's data. Data that does not look like a table is an error.
func parse(l *layout, i info, blob []byte) (*Table, error) {
	t := &Table{layout: l, info: i, blob: blob}
	most := len(blob)/(l.base+sizeHeader) + 1
	aside, err := mapAnonymous(most * int(unsafe.Sizeof(chain{})+unsafe.Sizeof(jump{})))
	if err != nil {
		return nil, err
	}
	t.aside = aside
	t.jumps = unsafe.Slice((*jump)(unsafe.Pointer(&aside[0])), most)[:0]
	t.chains = unsafe.Slice((*chain)(unsafe.Pointer(&aside[most*int(unsafe.Sizeof(jump{}))])), most)[:0]
	if err := t.find(); err != nil {
		release(aside)
		return nil, err
	}
	return t, nil
}

func (t *Table) find() error {
	called, n, l, blob := t.hookChains(), uint32(0), t.layout, t.blob
	for at := 0; at < len(blob); n++ {
		e, ok := l.entryAt(blob, at)
		if !ok {
			return fmt.Errorf("at %d of %d bytes is no entry", at, len(blob))
		}
		head, next := l.chainNamed(e) != nil, at+len(e)
		switch {
		case len(called) > 0 && int(called[0].from) == at:
			t.begin(called[0], n)
			called = called[1:]
		case head && next == len(blob):
			return t.checkEnded(len(called), n+1)
		case head:
			t.begin(chain{hook: -1, from: uint32(at), rules: uint32(next)}, n)
		case len(t.chains) == 0:
			return fmt.Errorf("the entry at %d is in no chain", at)
		}
		c := &t.chains[len(t.chains)-1]
		c.foot, c.next, c.count = uint32(at), uint32(next), c.count+1
		if v, _, is := l.verdict(e); is && v >= 0 {
			t.jumps = append(t.jumps, jump{uint32(at), uint32(v)})
		}
		at = next
	}
	return errors.New("the table has no end")
}

// hookChains returns the chains that the kernel calls, by its offsets.
func (t *Table) hookChains() (out []chain) {
	for h, from := range t.info.hooks {
		if t.info.validHooks&(1<<h) != 0 {
			out = append(out, chain{hook: int32(h), from: from, rules: from})
		}
	}
	slices.SortFunc(out, func(a, b chain) int { return cmp.Compare(a.from, b.from) })
	return out
}

func (t *Table) begin(c chain, n uint32) {
	c.first = n
	t.chains = append(t.chains, c)
}

// checkEnded checks what can be known only after all entries.
func (t *Table) checkEnded(missing int, entries uint32) error {
	if missing > 0 || entries != t.info.entries {
		return fmt.Errorf("%d chains are missing, %d entries of %d are there", missing, entries, t.info.entries)
	}
	for i, c := range t.chains {
		if c.foot < c.rules || (c.hook >= 0 && c.foot != t.info.floors[c.hook]) {
			return fmt.Errorf("chain %q has no end", t.name(i))
		}
	}
	return nil
}

// name returns a chain's name: from its head, or the kernel's for those that it calls.
func (t *Table) name(i int) []byte {
	c := t.chains[i]
	if c.hook >= 0 {
		return hookNames[c.hook]
	}
	return t.chainNamed(t.blob[c.from:c.rules])
}

// Close frees what the table is in.
func (t *Table) Close() {
	release(t.aside)
	if t.room != nil {
		release(t.room)
	}
}

// Name returns the table's.
func (t *Table) Name() string { return string(zeroEnded(t.info.name[:])) }

// Rule is a rule of a chain, as the kernel has it.
type Rule struct {
	entry entry
	To    []byte // the chain that it leads to; nil: to none
}

// All returns the names of all chains, with their rules.
func (t *Table) All() iter.Seq2[string, iter.Seq[Rule]] {
	return func(yield func(string, iter.Seq[Rule]) bool) {
		for i := range t.chains {
			if !yield(string(t.name(i)), t.rulesOf(i)) {
				return
			}
		}
	}
}

func (t *Table) rulesOf(i int) iter.Seq[Rule] {
	return func(yield func(Rule) bool) {
		for _, e := range t.entries(i) {
			if !yield(t.rule(e)) {
				return
			}
		}
	}
}

func (t *Table) rule(e entry) Rule {
	r := Rule{entry: e}
	if v, _, is := t.verdict(e); is && v >= 0 {
		if i, in := t.chainAt(int(v)); in && t.chains[i].hook < 0 && int(t.chains[i].rules) == int(v) {
			r.To = t.name(i)
		}
	}
	return r
}

// entries returns the rules of a chain and their offsets.
func (t *Table) entries(i int) iter.Seq2[int, entry] {
	return func(yield func(int, entry) bool) {
		for at := int(t.chains[i].rules); at < int(t.chains[i].foot); {
			_, size := t.offsets(t.blob[at:])
			if !yield(at, t.blob[at:at+size:at+size]) {
				return
			}
			at += size
		}
	}
}

// chainAt returns the chain that an offset is in.
func (t *Table) chainAt(at int) (int, bool) {
	i, is := slices.BinarySearchFunc(t.chains, at, func(c chain, at int) int { return cmp.Compare(int(c.from), at) })
	if !is {
		i--
	}
	return i, i >= 0 && at < int(t.chains[i].next)
}

// sameEntry reports whether two entries are the same, except for their counters and the kernel's private fields. The caller
// compares their targets, which are offsets.
func (l *layout) sameEntry(a, b entry) bool {
	if len(a) != len(b) || !bytes.Equal(a[:l.targetOffset-4], b[:l.targetOffset-4]) || !bytes.Equal(a[l.targetOffset:l.targetOffset+4], b[l.targetOffset:l.targetOffset+4]) {
		return false
	}
	v, at, is := l.verdict(a)
	if !is || v < 0 {
		return bytes.Equal(a[l.base:], b[l.base:])
	}
	w, _, both := l.verdict(b)
	return both && w >= 0 && bytes.Equal(a[l.base:at], b[l.base:at])
}
