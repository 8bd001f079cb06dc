package authoritative

import (
	"hash/maphash"
	"iter"
	"slices"
)

// table has the nodes by the hash of their names. It is a tree of two levels with a small hash table at each leaf. The
// old and the new table share what an edit does not touch: a change of a name copies one leaf, a 4096th of the zone,
// and what is above it.
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
	leaves [fanout]leaf
}

// leaf is a hash table with linear probing. A quarter of it at least is free, if it has any slots.
type leaf struct {
	edit  uint64
	used  int
	slots []slot
}

type slot struct {
	hash uint64
	node node
}

var seed = maphash.MakeSeed()

// hashOf returns the hash of a name as on the wire, in lower case.
func hashOf(name []byte) uint64 { return maphash.Bytes(seed, name) }

// find returns the node of a name as on the wire, in lower case; "" when it does not exist.
func (t *table) find(hash uint64, name []byte) node {
	slots := t.slots(hash)
	if len(slots) == 0 {
		return ""
	}
	for i := firstSlot(hash, len(slots)); ; i++ {
		if i == len(slots) {
			i = 0
		}
		s := &slots[i]
		if s.node == "" || s.hash == hash && s.node.name() == string(name) {
			return s.node
		}
	}
}

// slots returns those of the leaf for a hash.
func (t *table) slots(hash uint64) []slot {
	b := t.branches[hash>>(64-fanoutBits)]
	if b == nil {
		return nil
	}
	return b.leaves[hash>>(64-2*fanoutBits)%fanout].slots
}

// prefetch prefetches the memory that find will read for the name in a message's question. If it is called for several
// messages before they are answered, their waits for memory overlap: a large zone does not fit into the processor's
// cache. It is only a hint, and does not work for names with capitals. The result means nothing.
func (t *table) prefetch(message []byte) byte {
	end := headerSize
	for end < len(message) && message[end] != 0 {
		end += 1 + int(message[end])
	}
	if end >= len(message) {
		return 0
	}
	hash := hashOf(message[headerSize : end+1])
	slots := t.slots(hash)
	if len(slots) == 0 {
		return 0
	}
	for i := firstSlot(hash, len(slots)); ; i++ {
		if i == len(slots) {
			i = 0
		}
		switch s := &slots[i]; {
		case s.node == "":
			return 0
		case s.hash == hash:
			return s.node[0] + s.node[len(s.node)-1]
		}
	}
}

// firstSlot returns where the search for a hash begins in a leaf of that many slots.
func firstSlot(hash uint64, slots int) int { return int(uint64(uint32(hash)) * uint64(slots) >> 32) }

// all gives the nodes in no order.
func (t *table) all() iter.Seq[node] {
	return func(yield func(node) bool) {
		for _, b := range t.branches {
			for l := range b.all() {
				for _, s := range l.slots {
					if s.node != "" && !yield(s.node) {
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
		for i := range b.leaves {
			if !yield(&b.leaves[i]) {
				return
			}
		}
	}
}

// put makes n the node of its name; the edit of that number owns what it copies.
func (t *table) put(edit uint64, n node) {
	hash := maphash.String(seed, n.name())
	l := t.ownedLeaf(edit, hash)
	if 4*(l.used+1) > 3*len(l.slots) {
		l.rebuild(len(l.slots)+max(2, len(l.slots)/4), "")
	}
	l.insert(slot{hash, n})
}

// remove removes the node of a name.
func (t *table) remove(edit uint64, name string) {
	l := t.ownedLeaf(edit, maphash.String(seed, name))
	l.rebuild(len(l.slots), name)
}

// ownedLeaf returns the leaf for the hash, which is the edit's own.
func (t *table) ownedLeaf(edit, hash uint64) *leaf {
	b := t.branches[hash>>(64-fanoutBits)]
	if b == nil || b.edit != edit {
		own := branch{edit: edit}
		if b != nil {
			own.leaves = b.leaves
		}
		b = &own
		t.branches[hash>>(64-fanoutBits)] = b
	}
	l := &b.leaves[hash>>(64-2*fanoutBits)%fanout]
	if l.edit != edit {
		*l = leaf{edit: edit, used: l.used, slots: slices.Clone(l.slots)}
	}
	return l
}

// insert puts s in the place of the slot with its name, or into a free one.
func (l *leaf) insert(s slot) {
	for i := firstSlot(s.hash, len(l.slots)); ; i++ {
		if i == len(l.slots) {
			i = 0
		}
		old := l.slots[i].node
		if old == "" {
			l.used++
		}
		if old == "" || l.slots[i].hash == s.hash && old.name() == s.node.name() {
			l.slots[i] = s
			return
		}
	}
}

// rebuild puts all nodes but that named without into a table of the size.
func (l *leaf) rebuild(size int, without string) {
	old := l.slots
	l.slots, l.used = make([]slot, size), 0
	for _, s := range old {
		if s.node != "" && s.node.name() != without {
			l.insert(s)
		}
	}
}
