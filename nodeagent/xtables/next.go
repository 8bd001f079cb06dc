package xtables

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// Next is what a table is to become.
type Next struct {
	of            *Table
	buf           []byte // after room for struct ipt_replace
	count         int    // of entries
	kept          []piece
	hooks, floors [hooks]uint32
	free          func()
}

// Close frees what the next table is in.
func (n *Next) Close() { n.free() }

func (n *Next) entries() []byte { return n.buf[sizeReplace:] }

// resolve sets the offsets of new rules' jumps.
func (x *editor) resolve() error {
	called := slices.IndexFunc(x.keeps, func(i int32) bool { return x.chains[i].hook < 0 })
	if called < 0 {
		called = len(x.keeps)
	}
	kept := x.keeps[called:] // by name
	for _, j := range x.new.jumps {
		to := 0
		if made, is := slices.BinarySearch(x.made, j.to); is {
			to = x.madeAt[made]
		} else if k, is := slices.BinarySearchFunc(kept, j.to, func(i int32, name string) int {
			return strings.Compare(string(x.name(int(i))), name)
		}); is {
			to = int(x.at[kept[k]])
		} else {
			return fmt.Errorf("there is no chain %s to jump to", j.to)
		}
		x.setJump(x.new.buf[j.at:], to)
	}
	return nil
}

func (l *layout) setJump(e entry, to int) {
	target, _ := l.offsets(e)
	binary.NativeEndian.PutUint32(e[target+sizeHeader:], uint32(to))
}

// place makes the next table from its pieces: in the old one's memory if its pieces come in the same order and there is
// room, else in that of the new content.
func (x *editor) place() (*Next, error) {
	n := &Next{of: x.Table, count: x.count, hooks: x.hooks, floors: x.floors, free: func() { release(x.space) }}
	var made []piece
	for _, p := range x.pieces {
		if p.made {
			made = append(made, p)
		} else {
			n.kept = append(n.kept, p)
		}
	}
	byOld := func(a, b piece) int { return cmp.Compare(a.old, b.old) }
	led, err := x.follow(slices.SortedFunc(slices.Values(n.kept), byOld))
	if err != nil {
		return nil, err
	}
	if size := sizeReplace + x.size; size <= len(x.room) && slices.IsSortedFunc(n.kept, byOld) {
		n.buf = x.room[:size]
		movePieces(n.entries(), x.blob, n.kept)
		movePieces(n.entries(), x.new.buf, made)
	} else {
		if n.buf = x.space; size > len(n.buf) { // rules are larger than was thought
			n.buf = make([]byte, size)
		}
		n.buf = n.buf[:size]
		movePieces(n.entries(), x.new.buf, made)
		movePieces(n.entries(), x.blob, n.kept)
	}
	for _, j := range led {
		x.setJump(n.entries()[j.at:], int(j.to))
	}
	return n, nil
}

// movePieces moves pieces to their new places, in the same memory or in other. Those that move towards the end are moved last
// one first, the others first one first, so that none overwrites another.
func movePieces(to, from []byte, pieces []piece) {
	for _, p := range slices.Backward(pieces) {
		if p.at > p.old {
			copy(to[p.at:], from[p.old:p.old+p.size])
		}
	}
	for _, p := range pieces {
		if p.at <= p.old {
			copy(to[p.at:], from[p.old:p.old+p.size])
		}
	}
}

// follow returns the jumps that stay, with their new offsets.
func (x *editor) follow(kept []piece) ([]jump, error) {
	led, n := x.jumps[:0], 0
	for _, j := range x.jumps {
		at, to := int(j.at), int(j.to)
		for n < len(kept) && kept[n].old+kept[n].size <= at {
			n++
		}
		if n == len(kept) {
			break
		}
		if at < kept[n].old {
			continue
		}
		now := at - kept[n].old + kept[n].at
		if _, size := x.offsets(x.blob[at:]); to == at+size { // after a rule without a target the next one follows
			to = now + size
		} else if err := x.movedOffset(kept, &to); err != nil {
			return nil, err
		}
		led = append(led, jump{uint32(now), uint32(to)})
	}
	return led, nil
}

// movedOffset returns the new offset of a jump's target.
func (x *editor) movedOffset(kept []piece, to *int) error {
	if now, is := x.entered[*to]; is {
		*to = now
		return nil
	}
	i, is := slices.BinarySearchFunc(kept, *to, func(p piece, to int) int { return cmp.Compare(p.old, to) })
	if !is {
		i--
	}
	if i >= 0 && *to < kept[i].old+kept[i].size {
		*to += kept[i].at - kept[i].old
		return nil
	}
	if i, is := x.chainAt(*to); is && int(x.chains[i].rules) == *to {
		if made, is := slices.BinarySearch(x.made, string(x.name(i))); is {
			*to = x.madeAt[made]
			return nil
		}
	}
	return fmt.Errorf("a rule jumps to %d, where no chain begins", *to)
}
