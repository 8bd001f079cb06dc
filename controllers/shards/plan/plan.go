package plan

import (
	"encoding/json"
	"fmt"
	"slices"

	"federation/apiserver/apis/federation/v1beta1"
)

// Table has the holder of each shard, or "".
type Table [v1beta1.Shards]string

// ParseTable parses what String returned; "" is a table without holders. One in which two hold a shard is refused.
func ParseTable(text string) (t Table, err error) {
	if text == "" {
		return t, nil
	}
	var sets map[string]string
	if err := json.Unmarshal([]byte(text), &sets); err != nil {
		return t, err
	}
	for holder, text := range sets {
		set, err := ParseSet(text)
		if err != nil {
			return t, err
		}
		for _, shard := range set.Shards() {
			if other := t[shard]; other != "" {
				return t, fmt.Errorf("shard %d: must have one holder, not both %q and %q", shard, min(holder, other), max(holder, other))
			}
			t[shard] = holder
		}
	}
	return t, nil
}

// String returns JSON: the shards of each holder as ranges.
func (t Table) String() string {
	sets := map[string]string{}
	for _, holder := range t {
		if holder != "" && sets[holder] == "" {
			sets[holder] = t.Held(holder).String()
		}
	}
	text, _ := json.Marshal(sets) // never fails for strings
	return string(text)
}

// Held returns the shards of a holder.
func (t Table) Held(holder string) (s Set) {
	for shard, by := range t {
		if by == holder {
			s |= 1 << shard
		}
	}
	return s
}

// Aim returns the table that replicas converge to: all shards held by live replicas, none with two more than another,
// and as few moves as possible.
func Aim(now Table, live []string) Table {
	if len(live) == 0 {
		return now
	}
	quota := shardQuotas(now, live)
	aim, free := Table{}, []int{}
	for shard, holder := range now {
		if quota[holder] > 0 {
			quota[holder]--
			aim[shard] = holder
		} else {
			free = append(free, shard)
		}
	}
	for _, replica := range slices.Sorted(slices.Values(live)) {
		for ; quota[replica] > 0; quota[replica]-- {
			aim[free[0]], free = replica, free[1:]
		}
	}
	return aim
}

// shardQuotas returns how many shards each replica should hold. The remainder goes to those that hold most.
func shardQuotas(now Table, live []string) map[string]int {
	byHeld := slices.Clone(live)
	slices.SortFunc(byHeld, func(a, b string) int {
		if more := now.Held(b).Len() - now.Held(a).Len(); more != 0 {
			return more
		}
		if a < b {
			return -1
		}
		return 1
	})
	quota := map[string]int{}
	for i, replica := range byHeld {
		quota[replica] = v1beta1.Shards / len(live)
		if i < v1beta1.Shards%len(live) {
			quota[replica]++
		}
	}
	return quota
}

// isAtRest reports whether a table is what replicas converge to. It mostly is, and each replica asks at each renewal of any.
func isAtRest(now Table, live []string) bool {
	held := make([]int, len(live))
	for _, holder := range now {
		i := slices.Index(live, holder)
		if i < 0 {
			return false
		}
		held[i]++
	}
	return len(live) > 0 && slices.Max(held)-slices.Min(held) <= 1
}

// Turn is what one replica does next.
type Turn struct {
	// Take are shards without a holder, or with a dead one.
	Take Set
	// From are those dead holders, sorted.
	From []string
	// Give are shards that the replica holds and others should hold.
	Give Set
	// Table is the table to write, with all of that done.
	Table Table
}

// Next returns what self does next. live are the live replicas, including self. Nothing is given up until the set of
// live replicas has settled.
func Next(now Table, live []string, self string, settled bool) Turn {
	if isAtRest(now, live) {
		return Turn{Table: now}
	}
	aim, turn := Aim(now, live), Turn{Table: now}
	for shard, holder := range now {
		switch alive := slices.Contains(live, holder); {
		case aim[shard] == holder:
		case !alive && aim[shard] == self:
			turn.Take |= 1 << shard
			if holder != "" && !slices.Contains(turn.From, holder) {
				turn.From = append(turn.From, holder)
			}
			turn.Table[shard] = self
		case holder == self && settled:
			turn.Give |= 1 << shard
			turn.Table[shard] = aim[shard]
		}
	}
	slices.Sort(turn.From)
	return turn
}
