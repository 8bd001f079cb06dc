package plan

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"federation/apiserver/apis/federation/v1beta1"
)

// randomTable has holders of which some are live, some are dead, and "" is none.
func randomTable(r *rand.Rand) (t Table, live []string) {
	for i := range r.IntN(6) {
		live = append(live, fmt.Sprint("r", i))
	}
	holders := append([]string{"", "dead-1", "dead-2"}, live...)
	r.Shuffle(len(holders), func(i, j int) { holders[i], holders[j] = holders[j], holders[i] })
	holders = holders[:1+r.IntN(len(holders))] // so that some have much more than others
	for shard := range t {
		t[shard] = holders[r.IntN(len(holders))]
	}
	return t, live
}

// mostKept tries who of the live replicas gets one shard more than the others, and returns how many shards need not move at most.
func mostKept(t Table, live []string) (most int) {
	for more := range 1 << len(live) {
		kept, extra := 0, 0
		for i, replica := range live {
			quota := v1beta1.Shards/len(live) + more>>i&1
			extra += more >> i & 1
			kept += min(quota, t.Held(replica).Len())
		}
		if extra == v1beta1.Shards%len(live) {
			most = max(most, kept)
		}
	}
	return most
}

// TestAimAgainstAllDivisions: no division into equal parts leaves more shards where they are.
func TestAimAgainstAllDivisions(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 2))
		table, live := randomTable(r)
		if len(live) == 0 {
			if aim := Aim(table, nil); aim != table {
				t.Fatalf("seed %d: nobody lives, and shards move: %v", seed, aim)
			}
			continue
		}
		aim := Aim(table, live)
		spread(t, aim, live)
		kept := 0
		for shard := range table {
			if aim[shard] == table[shard] {
				kept++
			}
		}
		if most := mostKept(table, live); kept != most {
			t.Fatalf("seed %d: %d shards stay, %d could: %v with %v", seed, kept, most, table, live)
		}
		shuffled := slices.Clone(live)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if again := Aim(table, shuffled); again != aim {
			t.Fatalf("seed %d: with the replicas in another order %v, want %v", seed, again, aim)
		}
		if isAtRest(table, live) != (aim == table) {
			t.Fatalf("seed %d: at rest: %t, and the aim is %v", seed, isAtRest(table, live), aim)
		}
	}
}

// TestTurnsOfAllAtOnce: of the turns that replicas take by the same table no two have a shard in common, what each writes is what it says, and
// together they are the aim.
func TestTurnsOfAllAtOnce(t *testing.T) {
	for seed := range uint64(2000) {
		table, live := randomTable(rand.New(rand.NewPCG(seed, 3)))
		all, done := table, Set(0)
		for _, self := range live {
			turn := Next(table, live, self, true)
			if done&(turn.Take|turn.Give) != 0 || turn.Take&turn.Give != 0 {
				t.Fatalf("seed %d: %s changes what others do, or twice: %+v", seed, self, turn)
			}
			done |= turn.Take | turn.Give
			var from []string
			for shard := range table {
				changes := turn.Take.Has(shard) || turn.Give.Has(shard)
				if changes != (turn.Table[shard] != table[shard]) || turn.Take.Has(shard) && turn.Table[shard] != self {
					t.Fatalf("seed %d: %s, shard %d: %+v", seed, self, shard, turn)
				}
				if changes {
					all[shard] = turn.Table[shard]
				}
				if turn.Take.Has(shard) && table[shard] != "" && !slices.Contains(from, table[shard]) {
					from = append(from, table[shard])
				}
			}
			if slices.Sort(from); !slices.Equal(turn.From, from) {
				t.Fatalf("seed %d: %s takes over from %v, and says from %v", seed, self, from, turn.From)
			}
			unsettled := Next(table, live, self, false)
			if unsettled.Give != 0 || unsettled.Take != turn.Take {
				t.Fatalf("seed %d: unsettled, %s does %+v, settled %+v", seed, self, unsettled, turn)
			}
		}
		if want := Aim(table, live); all != want {
			t.Fatalf("seed %d: together they write %v, want %v", seed, all, want)
		}
	}
}

// TestTextsAndBack: sets and tables are read as they were written, and the text of a table has its holders and nobody else.
func TestTextsAndBack(t *testing.T) {
	if table, err := ParseTable(""); err != nil || table != (Table{}) {
		t.Errorf("of nothing: %v, %v", table, err)
	}
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 4))
		some, others := r.Uint64(), r.Uint64()
		set := Set(some & others)
		var shards []int
		for shard := range v1beta1.Shards {
			if set.Has(shard) {
				shards = append(shards, shard)
			}
		}
		if got, err := ParseSet(set.String()); err != nil || got != set || set.Len() != len(shards) || !slices.Equal(set.Shards(), shards) {
			t.Fatalf("seed %d: %b is written %q, and read %b, %v; its shards are %v, %d of them", seed, set, set, got, err, set.Shards(), set.Len())
		}
		table, _ := randomTable(r)
		if got, err := ParseTable(table.String()); err != nil || got != table {
			t.Fatalf("seed %d: %v is written %s, and read %v, %v", seed, table, table, got, err)
		}
		var text map[string]string
		if err := json.Unmarshal([]byte(table.String()), &text); err != nil {
			t.Fatal(err)
		}
		for holder, shards := range text {
			if holder == "" || table.Held(holder) == 0 || shards != table.Held(holder).String() {
				t.Fatalf("seed %d: %s has %q for %q", seed, table, shards, holder)
			}
		}
	}
}

// TestStateAgainstEachCluster says of one cluster after the other what a statement has to have of it. That another finds one
// well changes nothing.
func TestStateAgainstEachCluster(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 5))
		names := []string{"a", "b", "c", "d", "e"}
		some := func() (of []string) {
			for _, name := range names {
				if r.IntN(3) == 0 {
					of = append(of, name)
				}
			}
			return of
		}
		found := map[string]bool{}
		for _, name := range some() {
			found[name] = true
		}
		for _, name := range some() {
			found[name] = false
		}
		others := []Statement{{Lost: some(), Well: some()}, {Lost: some(), Well: some()}}[:r.IntN(3)]
		var want Statement
		for _, name := range names {
			well, known := found[name]
			if known && !well {
				want.Lost = append(want.Lost, name)
			}
			if known && well && slices.ContainsFunc(others, func(o Statement) bool { return slices.Contains(o.Lost, name) }) {
				want.Well = append(want.Well, name)
			}
		}
		got := State(found, others)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: found %v, others say %v: %v, want %v", seed, found, others, got, want)
		}
		if again := State(found, append(slices.Clone(others), Statement{Well: got.Well})); !reflect.DeepEqual(again, want) {
			t.Fatalf("seed %d: once another agrees: %v, want %v", seed, again, want)
		}
	}
}
