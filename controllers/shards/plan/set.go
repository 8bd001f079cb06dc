package plan

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"federation/apiserver/apis/federation/v1beta1"
)

// Set is a set of virtual shards: bit i stands for shard i.
type Set uint64

// All are all shards.
const All = Set(1<<v1beta1.Shards - 1)

// Has reports whether a shard is in the set.
func (s Set) Has(shard int) bool { return s&(1<<shard) != 0 }

// Len returns the number of shards in the set.
func (s Set) Len() int { return bits.OnesCount64(uint64(s)) }

// Shards returns the shards of the set in order.
func (s Set) Shards() []int {
	shards := make([]int, 0, s.Len())
	for left := uint64(s); left != 0; left &= left - 1 {
		shards = append(shards, bits.TrailingZeros64(left))
	}
	return shards
}

// String returns the set as ranges, such as "0-20,33"; "" for none.
func (s Set) String() string {
	var parts []string
	for first := 0; first < v1beta1.Shards; first++ {
		if !s.Has(first) {
			continue
		}
		last := first
		for last+1 < v1beta1.Shards && s.Has(last+1) {
			last++
		}
		if parts = append(parts, strconv.Itoa(first)); last > first {
			parts[len(parts)-1] += "-" + strconv.Itoa(last)
		}
		first = last
	}
	return strings.Join(parts, ",")
}

// ParseSet parses what String returned.
func ParseSet(text string) (s Set, err error) {
	if text == "" {
		return 0, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, ranged := strings.Cut(part, "-")
		if !ranged {
			to = from
		}
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || first < 0 || last < first || last >= v1beta1.Shards {
			return 0, fmt.Errorf("shards %q: %q must be a number or a range, from 0 to %d", text, part, v1beta1.Shards-1)
		}
		for i := first; i <= last; i++ {
			s |= 1 << i
		}
	}
	return s, nil
}
