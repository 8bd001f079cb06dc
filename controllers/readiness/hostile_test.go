package readiness

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/wire"
	"federation/controllers/readiness/plan"
)

// TestATouchedPolicyHidesNothing: while a tenant touches its policy all the time, one cluster after the other loses its nodes.
func TestATouchedPolicyHidesNothing(t *testing.T) {
	keeps(t, 40, 4*time.Second, func(k *kept) {
		p := &v1beta1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mine"}}
		k.create(v1beta1.PoliciesResource, asObject(t, "PlacementPolicy", p))
		time.Sleep(3 * time.Hour)
		for s := range 100 {
			if p.Annotations = map[string]string{"touched": fmt.Sprint(s)}; s%10 == 0 {
				p.Spec.Priority++ // no cluster has anything of it
			}
			k.update(v1beta1.PoliciesResource, asObject(t, "PlacementPolicy", p))
			if s < 40 {
				k.update(v1beta1.ClustersResource, asObject(t, "Cluster", zoned(s, 0)))
			}
			time.Sleep(time.Second)
		}
		for i := range 40 {
			if v := k.verdict(i); v.Status == metav1.ConditionTrue {
				t.Errorf("zone %d, a minute after the last loss: %+v", i, v)
			}
		}
	})
}

// TestTheSameReportIsNoDoubt: a cluster that a loss would fill reports each 15 s that nothing has changed.
func TestTheSameReportIsNoDoubt(t *testing.T) {
	keeps(t, 40, 40*time.Millisecond, func(k *kept) {
		time.Sleep(30 * time.Minute)
		full := k.receiver(20)
		c := zoned(full, 1)
		c.Status.Capacity.Free[0].Free["cpu"] = *resource.NewQuantity(1, resource.DecimalSI)
		k.update(v1beta1.ClustersResource, asObject(t, "Cluster", c))
		time.Sleep(2 * time.Hour)
		k.evaluations()
		version := k.api.Version()
		for range 240 {
			c.Status.Conditions[0].LastProbeTime = metav1.NewTime(time.Now())
			c.Status.Capacity.ObservedAt = metav1.NewTime(time.Now())
			k.update(v1beta1.ClustersResource, asObject(t, "Cluster", c))
			time.Sleep(15 * time.Second)
		}
		if all, writes := k.evaluations(), k.api.Version()-version-240; len(all) > 0 || writes > 0 {
			t.Errorf("%d evaluations and %d writes in an hour", len(all), writes)
		}
	})
}

// TestAMemberThatReportsHugeRoomDeniesNobody: what it reports is more than there are numbers.
func TestAMemberThatReportsHugeRoomDeniesNobody(t *testing.T) {
	keeps(t, 10, time.Millisecond, func(k *kept) {
		time.Sleep(30 * time.Minute)
		full := k.receiver(3)
		for range 20 {
			c := zoned(full, 9)
			c.Status.Capacity.Free[0].Free["memory"] = *resource.NewQuantity(1<<60, resource.BinarySI)
			c.Status.Capacity.Free[0].Free["cpu"] = *resource.NewMilliQuantity(1<<60, resource.DecimalSI)
			c.Status.Capacity.ObservedAt = metav1.NewTime(time.Now())
			k.update(v1beta1.ClustersResource, asObject(t, "Cluster", c))
			for range 15 {
				time.Sleep(time.Second)
				if v := k.verdict(3); v.Status != metav1.ConditionTrue {
					t.Fatalf("%+v", v)
				}
			}
		}
		if h := k.domains["zone.r.z03"].status.Headroom; h.Percent < 0 || h.Percent > 100 {
			t.Errorf("headroom %+v", h)
		}
	})
}

// TestAMemberThatRenamesItsZoneStarvesNobody: a new zone, never evaluated, each 10 s for an hour.
func TestAMemberThatRenamesItsZoneStarvesNobody(t *testing.T) {
	keeps(t, 40, 500*time.Millisecond, func(k *kept) {
		k.update(deployments, deployment(5, 5000))
		time.Sleep(time.Hour)
		if v := k.verdict(5); v.Status != metav1.ConditionFalse {
			t.Fatalf("at first: %+v", v)
		}
		k.update(deployments, deployment(5, 20))
		k.evaluations()
		for i := range 360 {
			c := zoned(39, 10)
			c.Status.Zones = []string{fmt.Sprint("renamed", i)}
			k.update(v1beta1.ClustersResource, asObject(t, "Cluster", c))
			time.Sleep(10 * time.Second)
		}
		if v := k.verdict(5); v.Status != metav1.ConditionTrue {
			t.Errorf("repaired an hour ago: %+v", v)
		}
		if all := slices.DeleteFunc(slices.Compact(k.evaluations()), func(name string) bool { return strings.Contains(name, "renamed") }); len(all) != 39 {
			t.Errorf("%d other zones are evaluated in the hour, want 39", len(all))
		}
		if len(k.stored) > len(k.domains) {
			t.Errorf("%d objects are kept for %d domains", len(k.stored), len(k.domains))
		}
	})
}

// TestATenantThatChangesALabelStarvesNobody: its zone is never in doubt for it, and another that was repaired has its turn.
func TestATenantThatChangesALabelStarvesNobody(t *testing.T) {
	keeps(t, 40, time.Second, func(k *kept) {
		k.update(deployments, deployment(5, 5000))
		k.update(deployments, deployment(3, 900))
		time.Sleep(2 * time.Hour)
		k.update(deployments, deployment(5, 20))
		for i := range 180 {
			u := deployment(3, 900)
			u.SetLabels(map[string]string{"changed": fmt.Sprint(i)})
			k.update(deployments, u)
			for range 10 {
				time.Sleep(time.Second)
				if v := k.verdict(3); v.Status != metav1.ConditionTrue {
					t.Fatalf("its own zone: %+v", v)
				}
			}
		}
		if v := k.verdict(5); v.Status != metav1.ConditionTrue {
			t.Errorf("repaired half an hour ago: %+v", v)
		}
	})
}

// TestAnEndedJobNeedsNoRoom: only the status of a Job says that it has ended.
func TestAnEndedJobNeedsNoRoom(t *testing.T) {
	placed := v1beta1.Placement{Clusters: map[string]int64{"c00": 60}}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "j", Generation: 1, UID: "u", Annotations: map[string]string{v1beta1.PlacementAnnotation: placed.String()}}, Spec: batchv1.JobSpec{Parallelism: new(int32(60))}}
	var kube *fake.Clientset
	packed := func(k *kept) cache.SharedIndexInformer {
		kube = fake.NewClientset(job)
		all := wire.NewInformers(wire.Source{Kube: kube, Dynamic: k.client, Slim: func(metav1.Object) {}})
		informer := all.ForResource(jobs)
		all.Start(k.t.Context().Done())
		return informer
	}
	keepsWith(t, 2, time.Millisecond, packed, func(k *kept) {
		time.Sleep(time.Minute)
		if v := k.verdict(0); v.Status != metav1.ConditionFalse {
			t.Fatalf("60 need room, and 40 have some: %+v", v)
		}
		job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: "True"}}
		if _, err := kube.BatchV1().Jobs("default").UpdateStatus(k.t.Context(), job, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if v := k.verdict(0); v.Status != metav1.ConditionTrue {
			t.Errorf("after its end: %+v", v)
		}
	})
}

// TestGrowthIsComparedWithLaterRoom: all clusters lose half of their room, which is enough; then an object grows into what is gone.
func TestGrowthIsComparedWithLaterRoom(t *testing.T) {
	keeps(t, 3, time.Millisecond, func(k *kept) {
		time.Sleep(time.Hour)
		k.update(deployments, deployment(0, 21))
		time.Sleep(15 * time.Second) // it is evaluated, and may not be again at once
		for i := range 3 {
			c := zoned(i, 10)
			c.Status.Capacity.Free[0].Free["cpu"] = *resource.NewQuantity(2, resource.DecimalSI)
			k.update(v1beta1.ClustersResource, asObject(t, "Cluster", c))
		}
		time.Sleep(2 * time.Second)
		if d := k.domains["zone.r.z00"]; d.Urgency == plan.Doubt {
			t.Fatalf("in doubt before it: %+v", d.Standing)
		}
		k.update(deployments, deployment(0, 50))
		time.Sleep(2 * time.Second)
		if d := k.domains["zone.r.z00"]; d.Urgency != plan.Doubt {
			t.Errorf("50 are to fit where 40 do, and the zone is not in doubt: %+v", d.Standing)
		}
	})
}

// TestAnExpiredEvaluationIsNotRefitted: then not only room is in doubt.
func TestAnExpiredEvaluationIsNotRefitted(t *testing.T) {
	now := time.Now()
	d := &domain{Standing: plan.Standing{Urgency: plan.Doubt, OnlyRoom: true, Doubtful: now, Evaluated: now.Add(-time.Minute)}, again: now.Add(time.Second)}
	d.evaluated.Conditions = []metav1.Condition{{Type: v1beta1.ReadinessSurvivable, Status: metav1.ConditionTrue}}
	c := &Controller{domains: map[string]*domain{"zone.east.a": d}}
	for after, want := range []plan.Urgency{plan.None, plan.Doubt, plan.Doubt} {
		if _, all := c.standings(now.Add(time.Duration(after) * time.Second)); all[0].Urgency != want {
			t.Errorf("%d s later its urgency is %v, want %v", after, all[0].Urgency, want)
		}
	}
}
