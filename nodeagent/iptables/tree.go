package iptables

import (
	"slices"
	"sort"
	"strings"
)

// maxLeaf is the maximum of keys of a chain before it leads to chains for parts of them.
const maxLeaf = 16

// tree finds the rules of a key (an address, or a port) in few steps: a chain for the keys of one prefix has their
// rules or, if there are more than maxLeaf, jumps by the next four bits. Prefixes that make no difference have no
// chain.
type tree struct {
	names
	root  string
	tail  []string // rules at the end of the root
	scope func(key string, bits int) (match, chain string)

	keys  []string // sorted; all of one length
	rules map[string][]string
}

// set sets the rules of a key (none: it is deleted) and returns the new content of chains: nil if one is deleted. It
// leaves out chains that the change does not touch, but a returned chain may be unchanged.
func (t *tree) set(key string, rules []string) map[string][]string {
	changed := map[string][]string{}
	t.visitNear(key, func(chain string, _ []string) { changed[chain] = nil })
	at, there := slices.BinarySearch(t.keys, key)
	switch {
	case len(rules) == 0 && there:
		t.keys = slices.Delete(t.keys, at, at+1)
		delete(t.rules, key)
	case len(rules) > 0:
		if !there {
			t.keys = slices.Insert(t.keys, at, key)
		}
		t.rules[key] = rules
	}
	t.visitNear(key, func(chain string, rules []string) { changed[chain] = rules })
	return changed
}

// visitNear visits the chains that a change of a key may touch: those on the way to it, and all below a node so small that
// one key more or less decides whether it is divided.
func (t *tree) visitNear(key string, visit func(chain string, rules []string)) {
	t.visitRange(t.root, 0, len(t.keys), 0, visit, func(lo, hi, bits int) bool {
		return hi-lo <= maxLeaf+1 || samePrefix(t.keys[lo], key, bits)
	})
}

// all visits all chains.
func (t *tree) all(visit func(chain string, rules []string)) {
	t.visitRange(t.root, 0, len(t.keys), 0, visit, func(int, int, int) bool { return true })
}

// visitRange visits the chain for keys lo to hi, which have their first bits in common, and the wanted ones below it.
func (t *tree) visitRange(chain string, lo, hi, bits int, visit func(string, []string), wanted func(lo, hi, bits int) bool) {
	rules := []string{}
	if hi-lo <= maxLeaf {
		for _, k := range t.keys[lo:hi] {
			rules = append(rules, t.rules[k]...)
		}
		lo = hi
	}
	for lo < hi {
		next := t.endOfGroup(lo, hi, bits+4)
		if next-lo == 1 {
			rules = append(rules, t.rules[t.keys[lo]]...)
		} else {
			common := commonBits(t.keys[lo], t.keys[next-1])
			match, child := t.scope(t.keys[lo], common)
			rules = append(rules, match+" "+t.to(child))
			if wanted(lo, next, common) {
				t.visitRange(child, lo, next, common, visit, wanted)
			}
		}
		lo = next
	}
	if bits == 0 {
		rules = append(rules, t.tail...)
	}
	visit(chain, rules)
}

// endOfGroup returns the first key after lo, before hi, that differs from it in its first bits.
func (t *tree) endOfGroup(lo, hi, bits int) int {
	return lo + sort.Search(hi-lo, func(i int) bool { return !samePrefix(t.keys[lo+i], t.keys[lo], bits) })
}

// nibbleAt returns the i-th group of four bits.
func nibbleAt(key string, i int) byte { return key[i/2] >> (4 * (1 - i%2)) & 15 }

// commonBits returns how many bits two different keys have in common, in fours.
func commonBits(a, b string) int {
	i := 0
	for nibbleAt(a, i) == nibbleAt(b, i) {
		i++
	}
	return 4 * i
}

func samePrefix(a, b string, bits int) bool {
	whole := bits / 8
	return strings.HasPrefix(a, b[:whole]) && (bits%8 == 0 || nibbleAt(a, bits/4-1) == nibbleAt(b, bits/4-1))
}

// insert sets the rules of one of many keys; sort must follow.
func (t *tree) insert(key string, rules []string) {
	t.keys = append(t.keys, key)
	t.rules[key] = rules
}

func (t *tree) sort() { slices.Sort(t.keys) }
