package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"federation/apiserver/apis/federation/v1beta1"
)

func TestSetsAsText(t *testing.T) {
	for text, want := range map[string]Set{"": 0, "0": 1, "0-63": All, "1-3,5,62-63": 0b101110 | 3<<62, "63": 1 << 63} {
		if got, err := ParseSet(text); err != nil || got != want {
			t.Errorf("ParseSet(%q) is %b, %v, want %b", text, got, err, want)
		}
		if got := want.String(); got != text {
			t.Errorf("%b is %q, want %q", want, got, text)
		}
	}
	for _, bad := range []string{"64", "-1", "3-1", "a", "1,,2", "1-64"} {
		if _, err := ParseSet(bad); err == nil {
			t.Errorf("ParseSet(%q) is taken", bad)
		}
	}
}

func TestTablesAsText(t *testing.T) {
	table := Aim(Table{}, []string{"a", "b", "c"})
	text := table.String()
	if want := `{"a":"0-21","b":"22-42","c":"43-63"}`; text != want {
		t.Errorf("%s, want %s", text, want)
	}
	if got, err := ParseTable(text); err != nil || got != table {
		t.Errorf("%v %v", got, err)
	}
	for _, bad := range []string{"x", `{"a":"64"}`} {
		if _, err := ParseTable(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// moves counts shards that change from one live holder to another.
func moves(was, is Table, live []string) (n int) {
	for shard := range was {
		if was[shard] != is[shard] && slices.Contains(live, was[shard]) {
			n++
		}
	}
	return n
}

func spread(t *testing.T, table Table, live []string) {
	t.Helper()
	least, most := v1beta1.Shards, 0
	total := 0
	for _, replica := range live {
		n := table.Held(replica).Len()
		least, most, total = min(least, n), max(most, n), total+n
	}
	if most-least > 1 || total != v1beta1.Shards {
		t.Fatalf("held from %d to %d, %d in sum: %v", least, most, total, table)
	}
}

func TestFewMove(t *testing.T) {
	live := []string{"a", "b", "c"}
	three := Aim(Table{}, live)
	spread(t, three, live)
	if again := Aim(three, []string{"c", "a", "b"}); again != three {
		t.Error("what is balanced moves")
	}
	four := append(live, "d")
	if got := Aim(three, four); moves(three, got, four) != 16 {
		t.Errorf("%d shards move when a fourth comes, want 16", moves(three, got, four))
	}
	two := live[:2]
	if got := Aim(three, two); moves(three, got, two) != 0 {
		t.Errorf("%d shards of those that live move when the third dies", moves(three, got, two))
	}
}

// TestShardLaws makes replicas come, die and leave in any order, each sometimes acting on an old table.
func TestShardLaws(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var live []string
		table, next := Table{}, 0
		for range 60 {
			switch r.IntN(6) {
			case 0:
				live = append(live, fmt.Sprint("r", next))
				next++
			case 1: // one dies or leaves
				if len(live) > 1 {
					i := r.IntN(len(live))
					live = slices.Delete(live, i, i+1)
				}
			default:
				if len(live) > 0 {
					self := live[r.IntN(len(live))]
					if rests := Aim(table, live) == table; rests != isAtRest(table, live) {
						t.Fatalf("seed %d: with %v, %v is at rest: %t", seed, live, table, rests)
					}
					turn := Next(table, live, self, r.IntN(2) == 0)
					if turn.Give&^table.Held(self) != 0 || turn.Take&table.Held(self) != 0 {
						t.Fatalf("seed %d: it gives what it has not, or takes what it has: %+v", seed, turn)
					}
					table = turn.Table
				}
			}
		}
		if len(live) == 0 {
			continue
		}
		for range 2 { // all have had their turn: first those that give, then those that take
			for _, self := range live {
				table = Next(table, live, self, true).Table
			}
		}
		spread(t, table, live)
		for _, self := range live {
			if turn := Next(table, live, self, true); turn.Table != table || turn.Take|turn.Give != 0 {
				t.Fatalf("seed %d: no rest: %+v", seed, turn)
			}
		}
	}
}

func TestUnsettledGivesNothing(t *testing.T) {
	one := Aim(Table{}, []string{"a"})
	if turn := Next(one, []string{"a", "b"}, "a", false); turn.Give != 0 || turn.Table != one {
		t.Errorf("%+v", turn)
	}
	if turn := Next(one, []string{"a", "b"}, "a", true); turn.Give.Len() != 32 || turn.Table.Held("b").Len() != 32 {
		t.Errorf("%+v", turn)
	}
	dead := Next(one, []string{"b"}, "b", false)
	if dead.Take != All || !slices.Equal(dead.From, []string{"a"}) || dead.Table.Held("b") != All {
		t.Errorf("%+v", dead)
	}
}

// TestTwoNeverHoldOneShard: a table that says so is refused, each time.
func TestTwoNeverHoldOneShard(t *testing.T) {
	for range 20 { // of a map in whatever order
		if table, err := ParseTable(`{"a":"0-31","b":"31-63"}`); err == nil {
			t.Fatalf("shard 31 is %s's", table[31])
		}
	}
}
