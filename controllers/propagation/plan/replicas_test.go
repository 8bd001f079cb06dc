package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestReplicasOf: placed and ready by cluster; what a cluster reports is bounded, and of one that cannot be asked nothing is known.
func TestReplicasOf(t *testing.T) {
	federated := parse(t, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"default","name":"web"},"spec":{"replicas":9}}`)
	annotate("federation.kubernetes.io/placement", `{"clusters":{"a":4,"b":3,"c":2}}`)(federated)
	reports := func(ready string) Copy {
		return Copy{State: Synced, Object: parse(t, `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":4},"status":{"replicas":4,"readyReplicas":`+ready+`}}`)}
	}
	a, b, gone := reports("1000000"), reports("-7"), reports("1")
	a.Cluster, b.Cluster, gone.Cluster = "a", "b", "left"
	copies := []Copy{a, b, {Cluster: "c", State: Unreachable}, gone, {Cluster: "never", State: Synced}}
	want := []Replicas{{"a", 4, 4, true}, {"b", 3, 0, true}, {"c", 2, 0, false}, {"left", 0, 1, true}}
	s := Source{Kind: kind(t, "Deployment"), Object: federated, Placement: Read(federated)}
	if got := ReplicasOf(s, copies); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestShareLimit: whatever others ask for, an owner gets what it asks for or an equal part, up to the cost of one item; never is more taken
// than the limit; and what is left is counted.
func TestShareLimit(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		limit, largest, asked, number := r.IntN(300), 1+r.IntN(6), map[string]int{}, 0
		owners := map[string][]int{}
		for o := range r.IntN(8) {
			name := fmt.Sprint("ns-", o)
			for range r.IntN(1 + r.IntN(200)) {
				cost := 1 + r.IntN(largest)
				owners[name] = append(owners[name], cost)
				asked[name] += cost
				number++
			}
		}
		// Costs of an owner are alike, as they are for objects of a namespace: one that does not fit ends its turns.
		total, items, got := 0, 0, map[string]int{}
		left := ShareLimit(limit, itemsOf(owners), func(i item, room int) int {
			if i.cost <= room {
				total, items = total+i.cost, items+1
				got[i.owner] += i.cost
			}
			return i.cost
		})
		if total > limit || left+items != number {
			t.Fatalf("seed %d: %d taken of at most %d; %d left and %d taken of %d", seed, total, limit, left, items, number)
		}
		for name, n := range asked {
			if part := limit/len(asked) - largest; got[name] < min(n, part) {
				t.Fatalf("seed %d: %s got %d of %d, where an equal part is %d: %v of %v", seed, name, got[name], n, part, got, asked)
			}
		}
	}
}

type item struct {
	owner string
	cost  int
}

func itemsOf(owners map[string][]int) map[string][]item {
	out := map[string][]item{}
	for name, costs := range owners {
		for _, cost := range costs {
			out[name] = append(out[name], item{name, cost})
		}
	}
	return out
}
