package plan

import (
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestParseLevels: each level once, in the order of the flag.
func TestParseLevels(t *testing.T) {
	for words, want := range map[string][]Level{"": nil, "Zone": {Zone}, "Region,Zone": {Region, Zone}, "Zone,Zone": {Zone}} {
		if got, err := ParseLevels(strings.FieldsFunc(words, func(r rune) bool { return r == ',' })); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", words, got, err)
		}
	}
	for _, bad := range []string{"zone", "Cluster", ""} {
		if _, err := ParseLevels([]string{"Zone", bad}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", bad)) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestDomains_Laws: of random clusters in any order the same domains come, by name, each once and with its clusters by name; a cluster is in its
// region's, and in its zone's if it is in one zone alone.
func TestDomains_Laws(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	for range 300 {
		var clusters []*v1beta1.Cluster
		for i := range random.Intn(8) {
			zones := []string{"a", "b", "c"}[:random.Intn(4)]
			clusters = append(clusters, cluster(fmt.Sprintf("c%d", i), []string{"", "east", "west"}[random.Intn(3)], zones...))
		}
		for _, levels := range [][]Level{nil, {Zone}, {Region}, {Region, Zone}} {
			all := Domains(clusters, levels)
			member := map[string]int{}
			for i, d := range all {
				if i > 0 && all[i-1].Name >= d.Name || !slices.IsSorted(d.Clusters) || len(d.Clusters) == 0 || len(slices.Compact(slices.Clone(d.Clusters))) != len(d.Clusters) {
					t.Fatalf("%v: %+v", levels, all)
				}
				for _, c := range d.Clusters {
					member[c]++
				}
			}
			for _, c := range clusters {
				want := 0
				if c.Status.Region != "" && slices.Contains(levels, Region) {
					want++
				}
				if c.Status.Region != "" && slices.Contains(levels, Zone) && len(c.Status.Zones) == 1 {
					want++
				}
				if member[c.Name] != want {
					t.Fatalf("%s of %s %v is in %d domains, want %d: %+v", c.Name, c.Status.Region, c.Status.Zones, member[c.Name], want, all)
				}
			}
			shuffled := slices.Clone(clusters)
			random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			if again := Domains(shuffled, levels); !reflect.DeepEqual(again, all) {
				t.Fatalf("in another order: %+v, want %+v", again, all)
			}
		}
	}
}

// TestNext_NobodyStarves plays hours in which objects change at random, and one domain after the other is evaluated as Next says: what has changed is
// evaluated in time, though each evaluation takes some and there may be more than there is time for. After the wait that Next returns something is
// due, and nothing before.
func TestNext_NobodyStarves(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	const domains, limit = 12, 4 * time.Minute
	all, touched := make([]Standing, domains), make([]time.Time, domains)
	at := now
	for turn := range 20_000 {
		busy := at.Sub(now)%(2*time.Hour) < time.Hour // then there is more to evaluate than there is time for
		for range 4 {
			i := random.Intn(3 * domains)
			if i >= domains && !busy || i >= domains/2 && i%domains == 0 {
				continue
			}
			u := []Urgency{Stale, Changed}[random.Intn(2)]
			all[i%domains].Touch(u, at)
			if u == Changed && touched[i%domains].IsZero() {
				touched[i%domains] = at
			}
		}
		next, wait := Next(all, at, turn)
		if next < 0 && wait < 0 || next >= 0 && wait != 0 {
			t.Fatalf("next %d in %s", next, wait)
		}
		if next < 0 {
			if wait > 0 {
				if later, _ := Next(all, at.Add(wait), turn); later < 0 {
					t.Fatalf("after %s nothing is due: %+v", wait, all)
				}
				if sooner, _ := Next(all, at.Add(wait-1), turn); sooner >= 0 {
					t.Fatalf("before %s domain %d is due: %+v", wait, sooner, all)
				}
			}
			at = at.Add(time.Second)
			continue
		}
		if since := touched[next]; !since.IsZero() && at.Sub(since) > limit {
			t.Fatalf("domain %d was evaluated %s after it was touched", next, at.Sub(since))
		}
		all[next], touched[next] = Standing{Evaluated: at}, time.Time{}
		at = at.Add(7 * time.Second)
	}
	for i := range all {
		if all[i].Evaluated.IsZero() {
			t.Errorf("domain %d was never evaluated", i)
		}
	}
}
