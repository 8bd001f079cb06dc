package plan

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
	servicednsplan "federation/controllers/servicedns/plan"
	"federation/scheduler"
)

// TestAffectedOnly checks that a review of what is affected equals one that decides every object and every name, and
// that the objects it leaves out keep their numbers. Acceptance test 30 of drills, first half.
func TestAffectedOnly(t *testing.T) {
	var decided, passed, moved, unschedulable int
	for seed := range int64(1000) {
		f := newFleet(seed)
		for _, spec := range f.losses() {
			got, errs := Review(f.Input, spec)
			if len(errs) > 0 {
				t.Fatal(seed, errs)
			}
			then := withLost(f.Clusters, got.Clusters, f.Now)
			if spec.Drained {
				then = withDrained(f.Clusters, got.Clusters)
			}
			want := whole(t, &f.Input, then, got.Clusters, seed)
			if !reflect.DeepEqual(got.Moves, want) {
				t.Fatalf("seed %d, %+v: moves\n%s\nall decided:\n%s", seed, spec, asText(got.Moves), asText(want))
			}
			if want := wholeRecords(&f.Input, then); !reflect.DeepEqual(got.Records, want) {
				t.Fatalf("seed %d, %+v: records\n%s\nof all:\n%s", seed, spec, asText(got.Records), asText(want))
			}
			some := len(affectedObjects(f.Objects, scheduler.NewWorld(then, f.Policies), got.Clusters))
			decided, passed, moved, unschedulable = decided+some, passed+len(f.Objects)-some, moved+len(got.Moves), unschedulable+int(got.ReplicasUnschedulable)
		}
	}
	t.Logf("%d decided, %d passed over; %d objects moved, %d replicas fit nowhere", decided, passed, moved, unschedulable)
	if passed < 2000 || moved < 5000 || unschedulable < 5000 {
		t.Error("these fleets show too little")
	}
}

// whole decides all objects.
func whole(t *testing.T, in *Input, then []*v1beta1.Cluster, lost []string, seed int64) (all []v1beta1.ReplicaMove) {
	t.Helper()
	w := scheduler.NewWorld(then, in.Policies)
	decisions := scheduler.DecideAll(in.Objects, w, in.Now)
	for _, i := range scheduler.Order(in.Objects, w) {
		o, d := &in.Objects[i], &decisions[i]
		if m, ok := replicaMove(o, d, lost); ok {
			all = append(all, m)
		}
		for name, n := range d.Placement.Clusters {
			if !isIn(o, lost) && w.Steady(o) && o.At(name) != n {
				t.Fatalf("seed %d: %s is steady, and has %v, and then %v", seed, o.Name, o.Current.Clusters, d.Placement.Clusters)
			}
		}
	}
	return all
}

// wholeRecords decides all names.
func wholeRecords(in *Input, then []*v1beta1.Cluster) []v1beta1.RecordChange {
	of := func(clusters []*v1beta1.Cluster) servicednsplan.Plan {
		return servicednsplan.Records(servicednsplan.Input{Federation: "fed", Zone: "example.test.", TTL: uint32(in.Info.DNSTTL / time.Second), Objects: slices.Clone(in.Named), Clusters: in.servedClusters(clusters)})
	}
	return setChanges(of(in.Clusters).Records, of(then).Records)
}

func asText(v any) string {
	b, _ := json.MarshalIndent(v, "", " ")
	return string(b)
}
