package clusterregistry

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/isolation"
)

// isolate renews the Lease by which a drill isolates clusters.
func (f *fleet) isolate(as v1beta1.IsolationMode, renewed time.Time, clusters ...string) {
	f.t.Helper()
	f.renew(v1beta1.Isolation{As: as, Clusters: clusters}, renewed)
}

func (f *fleet) renew(is v1beta1.Isolation, renewed time.Time) {
	f.t.Helper()
	leases := f.core.CoordinationV1().Leases(v1beta1.FederationNamespace)
	was, err := leases.Get(f.t.Context(), v1beta1.DrillLease, metav1.GetOptions{})
	if err != nil {
		_, err = leases.Create(f.t.Context(), isolation.Renewed(nil, "drill", is, renewed), metav1.CreateOptions{})
	} else {
		_, err = leases.Update(f.t.Context(), isolation.Renewed(was, "drill", is, renewed), metav1.UpdateOptions{})
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// A cluster that a drill isolates is lost as one is whose network is: what is held of it ends, nothing passes, and others know nothing of it. It is back
// when the Lease goes.
func TestADrillIsolatesAMember(t *testing.T) {
	for as, want := range map[v1beta1.IsolationMode]string{v1beta1.IsolateSilent: "cluster is not reachable: no answer within 300ms", v1beta1.IsolateRefused: "cluster is not reachable: connection refused"} {
		t.Run(string(as), func(t *testing.T) {
			f, east, west := newFleet(t), newFakeMember(t), newFakeMember(t)
			f.join("east", east, "good")
			f.join("west", west, "good")
			f.eventuallyReady("east", v1beta1.ReasonClusterReady)
			f.eventuallyReady("west", v1beta1.ReasonClusterReady)
			f.eventually("connected", func() bool { return f.member("east") != nil })
			before, live := f.cluster("east").Spec, f.member("east")
			f.isolate(as, time.Now(), "east")
			f.eventuallyReady("east", v1beta1.ReasonClusterNotReachable)
			if got := f.cluster("east").Condition(v1beta1.ClusterReady).Message; got != want {
				t.Errorf("lost for %q, want %q", got, want)
			}
			<-live.Done()
			if isolated, known := f.Isolated(); !known || !slices.Equal(isolated, []string{"east"}) {
				t.Errorf("isolated: %v, known %t", isolated, known)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			passed := len(east.seen("/api/v1/configmaps"))
			if _, err := live.Dynamic.Resource(configMaps).Namespace("default").Get(ctx, "c", metav1.GetOptions{}); err == nil || len(east.seen("/api/v1/configmaps")) > passed {
				t.Errorf("something passes the barrier: %v", err)
			}
			if c := f.cluster("west"); !c.IsReady() {
				t.Error("a cluster that is not named is lost, too")
			}
			if err := f.core.CoordinationV1().Leases(v1beta1.FederationNamespace).Delete(t.Context(), v1beta1.DrillLease, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			f.eventuallyReady("east", v1beta1.ReasonClusterReady)
			if dead := f.DeadBehind(); len(dead) > 0 {
				t.Errorf("dead behind the barrier: %v", dead)
			}
			if after := f.cluster("east").Spec; !reflect.DeepEqual(before, after) {
				t.Errorf("the spec was %+v, is %+v", before, after)
			}
		})
	}
}

// An isolation that nobody renews ends by itself, and one that has run out before this process came isolates nobody. Acceptance test 10 of drills.
func TestAnIsolationThatNobodyRenewsEnds(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	f.isolate(v1beta1.IsolateRefused, time.Now().Add(2*time.Second-isolation.Lasts), "east")
	f.join("east", east, "good")
	f.eventuallyReady("east", v1beta1.ReasonClusterNotReachable)
	f.eventuallyReady("east", v1beta1.ReasonClusterReady)
}
