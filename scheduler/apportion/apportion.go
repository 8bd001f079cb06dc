package apportion

import (
	"cmp"
	"container/heap"
	"math/bits"
	"slices"
)

// apportion sets x of each slot, within lo and hi, so that the sum is total and the shares follow the weights. It
// returns what the upper bounds leave over. The sum of the lower bounds must not exceed total. Slots without weight get
// what their bounds force on them, and fill up last.
func apportion(slots []*slot, total int64) (unschedulable int64) {
	weighted := make([]*slot, 0, len(slots))
	left := total
	for _, s := range slots {
		s.x = s.lo
		left -= s.lo
		if s.pref.Weight > 0 && s.hi > s.lo {
			weighted = append(weighted, s)
		}
	}
	if room := totalRoom(weighted); left >= room {
		for _, s := range weighted {
			s.x = s.hi
		}
		return fillUnweighted(slots, left-room)
	}
	setNear(weighted, left)
	distributeRest(weighted, left)
	return 0
}

func totalRoom(slots []*slot) (sum int64) {
	for _, s := range slots {
		sum += s.hi - s.lo
	}
	return sum
}

// fillUnweighted lets slots without weight keep what already runs there (up to their upper bound when replicas are
// removed) and returns the rest. They never get new replicas.
func fillUnweighted(slots []*slot, left int64) int64 {
	for _, s := range slots {
		if s.pref.Weight == 0 {
			more := max(0, min(left, s.hi-s.lo, s.Current-s.min-s.x))
			s.x += more
			left -= more
		}
	}
	return left
}

// setNear sets every x near its final value: it finds the level L at which the sum of clamp(weight·L, lo, hi) is the
// total, and rounds. left is the total less the sum of lo.
func setNear(slots []*slot, left int64) {
	type bend struct {
		at    ratio // the level at which the slot leaves a bound
		s     *slot
		upper bool
	}
	bends := make([]bend, 0, 2*len(slots))
	for _, s := range slots {
		bends = append(bends, bend{ratio{s.lo, s.pref.Weight}, s, false}, bend{ratio{s.hi, s.pref.Weight}, s, true})
	}
	slices.SortFunc(bends, func(a, b bend) int { return a.at.compare(b.at) })

	// As the level rises, fixed is the sum of the slots at a bound and weights the growth of the rest.
	fixed, weights := int64(0), int64(0)
	for _, s := range slots {
		left += s.lo
		fixed += s.lo
	}
	level := ratio{0, 1}
	for _, b := range bends {
		if weights > 0 && (ratio{left - fixed, weights}).less(b.at) {
			break
		}
		if b.upper {
			fixed, weights = fixed+b.s.hi, weights-b.s.pref.Weight
		} else {
			fixed, weights = fixed-b.s.lo, weights+b.s.pref.Weight
		}
	}
	if weights > 0 {
		level = ratio{max(0, left-fixed), weights}
	}
	for _, s := range slots {
		s.x = max(s.lo, min(s.hi, level.times(s.pref.Weight)))
	}
}

// distributeRest adds or removes single replicas until exactly left of them are on top of lo. It adds to the slot with the
// greatest claim and removes from the one with the least. Rounding in start is off by less than one per slot, so the
// number of steps is at most the number of slots.
func distributeRest(slots []*slot, left int64) {
	for _, s := range slots {
		left -= s.x - s.lo
	}
	q := &queue{slots: append([]*slot(nil), slots...), add: left > 0}
	heap.Init(q)
	for left != 0 {
		s := q.slots[0]
		if q.add {
			s.x, left = s.x+1, left-1
		} else {
			s.x, left = s.x-1, left+1
		}
		heap.Fix(q, 0)
	}
}

// queue orders slots by their claim to the next replica (add), or by how weak their claim to the last one is.
type queue struct {
	slots []*slot
	add   bool
}

func (q *queue) Len() int      { return len(q.slots) }
func (q *queue) Swap(i, j int) { q.slots[i], q.slots[j] = q.slots[j], q.slots[i] }
func (q *queue) Push(any)      {}
func (q *queue) Pop() any      { return nil }

func (q *queue) Less(i, j int) bool {
	a, b := q.slots[i], q.slots[j]
	if q.add {
		if aFull, bFull := a.x >= a.hi, b.x >= b.hi; aFull || bFull {
			return !aFull
		}
		return hasBetterClaim(a, b, 0)
	}
	if aEmpty, bEmpty := a.x <= a.lo, b.x <= b.lo; aEmpty || bEmpty {
		return !aEmpty
	}
	return hasBetterClaim(b, a, 1)
}

// hasBetterClaim reports whether a has the better claim to its replica number x+1-back than b to its own: weight/(2x+1) for the
// next, weight/(2x-1) for the last. Ties go to the slot where the replica already runs, then to the plan's order; among those that have a replica on top of
// their minimum, a hash of cluster and key decides.
func hasBetterClaim(a, b *slot, back int64) bool {
	ax, bx := a.x-back, b.x-back
	aHi, aLo := bits.Mul64(uint64(a.pref.Weight), uint64(2*bx+1))
	bHi, bLo := bits.Mul64(uint64(b.pref.Weight), uint64(2*ax+1))
	if aHi != bHi || aLo != bLo {
		return aHi > bHi || aHi == bHi && aLo > bLo
	}
	if aRuns, bRuns := a.Current > a.min+ax, b.Current > b.min+bx; aRuns != bRuns {
		return aRuns
	}
	return a.beforeAt(ax, b)
}

// ratio is the fraction num/den, den > 0.
type ratio struct{ num, den int64 }

func (r ratio) less(o ratio) bool { return r.compare(o) < 0 }

func (r ratio) compare(o ratio) int {
	aHi, aLo := bits.Mul64(uint64(r.num), uint64(o.den))
	bHi, bLo := bits.Mul64(uint64(o.num), uint64(r.den))
	return cmp.Or(cmp.Compare(aHi, bHi), cmp.Compare(aLo, bLo))
}

// times returns w·r, rounded to the nearest.
func (r ratio) times(w int64) int64 {
	hi, lo := bits.Mul64(uint64(r.num), uint64(w))
	lo, carry := bits.Add64(lo, uint64(r.den/2), 0)
	q, _ := bits.Div64(hi+carry, lo, uint64(r.den))
	return int64(q)
}
