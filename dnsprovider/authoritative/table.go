package authoritative

import (
	"hash/maphash"
	"iter"
)

// table has the nodes by the hash of their names. It is a tree of two levels with a small hash table
// at each leaf. What an edit does not touch, the old table and the new one share: a change of a name
// copies one leaf, whose size is that of the zone divided by 4096, and the two arrays above it.
type table struct {
	branches [fanout]*branch
}

const (
	fanoutBits = 6
	fanout     = 1 << fanoutBits
)

type branch struct {
	// edit is the number of the edit that made it, and may still change it.
	edit   uint64
	leaves [fanout]*leaf
}

// leaf is a hash table with linear probing. Its length is a power of two, and a third of it at least is free.
type leaf struct {
	edit  uint64
	used  int
	slots []slot
}

type slot struct {
	hash uint64
	node *node
}

var seed = maphash.MakeSeed()

// hashOf is the hash of a name as on the wire, in lower case.
func hashOf(name []byte) uint64 { return maphash.Bytes(seed, name) }

// find returns the node of a name as on the wire, in lower case; nil when it does not exist.
func (t *table) find(hash uint64, name []byte) *node {
	b := t.branches[hash>>(64-fanoutBits)]
	if b == nil {
		return nil
	}
	l := b.leaves[hash>>(64-2*fanoutBits)%fanout]
	if l == nil {
		return nil
	}
	last := uint64(len(l.slots) - 1)
	for i := hash & last; ; i = (i + 1) & last {
		s := &l.slots[i&last]
		if s.node == nil || s.hash == hash && s.node.name == string(name) {
			return s.node
		}
	}
}

// all gives the nodes in no order.
func (t *table) all() iter.Seq[*node] {
	return func(yield func(*node) bool) {
		for _, b := range t.branches {
			for l := range b.all() {
				for _, s := range l.slots {
					if s.node != nil && !yield(s.node) {
						return
					}
				}
			}
		}
	}
}

func (b *branch) all() iter.Seq[*leaf] {
	return func(yield func(*leaf) bool) {
		if b == nil {
			return
		}
		for _, l := range b.leaves {
			if l != nil && !yield(l) {
				return
			}
		}
	}
}

// put makes n the node of its name; the edit of that number owns what it makes anew.
func (t *table) put(edit uint64, n *node) {
	l := t.owned(edit, hashOf([]byte(n.name)))
	if 3*(l.used+1) > 2*len(l.slots) {
		l.rebuild(2*len(l.slots), nil)
	}
	l.insert(slot{hashOf([]byte(n.name)), n})
}

// remove takes the node of a name away.
func (t *table) remove(edit uint64, name string) {
	l := t.owned(edit, hashOf([]byte(name)))
	l.rebuild(len(l.slots), &name)
}

// owned returns the leaf for the hash, which is the edit's own.
func (t *table) owned(edit, hash uint64) *leaf {
	b := t.branches[hash>>(64-fanoutBits)]
	if b == nil || b.edit != edit {
		own := branch{edit: edit}
		if b != nil {
			own.leaves = b.leaves
		}
		b = &own
		t.branches[hash>>(64-fanoutBits)] = b
	}
	at := &b.leaves[hash>>(64-2*fanoutBits)%fanout]
	if l := *at; l == nil {
		*at = &leaf{edit: edit, slots: make([]slot, 2)}
	} else if l.edit != edit {
		*at = &leaf{edit: edit, used: l.used, slots: append([]slot(nil), l.slots...)}
	}
	return *at
}

// insert puts s in the place of the slot with its name, or into a free one.
func (l *leaf) insert(s slot) {
	last := uint64(len(l.slots) - 1)
	for i := s.hash & last; ; i = (i + 1) & last {
		old := l.slots[i].node
		if old == nil {
			l.used++
		}
		if old == nil || old.name == s.node.name {
			l.slots[i] = s
			return
		}
	}
}

// rebuild puts all nodes but that named without into a table of the size.
func (l *leaf) rebuild(size int, without *string) {
	old := l.slots
	l.slots, l.used = make([]slot, size), 0
	for _, s := range old {
		if s.node != nil && (without == nil || s.node.name != *without) {
			l.insert(s)
		}
	}
}
