package fleettest

import (
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

const drillUsage = "drill Shift|Evacuate|Isolate|Blackhole CLUSTER SECONDS | drill end"

// drillCluster carries out drill METHOD CLUSTER SECONDS: somebody makes a drill of a cluster that is to hold for so long.
//
//	drill end: all drills are deleted; soon none is there, and nothing of them is left
func drillCluster(p *player, args []string) error {
	if len(args) == 1 && args[0] == "end" {
		return endDrills(p)
	}
	if err := need(args, 3, drillUsage); err != nil {
		return err
	}
	m, err := p.find(args[1])
	if err != nil {
		return err
	}
	hold, err := strconv.Atoi(args[2])
	if err != nil {
		return fmt.Errorf("%q: must be a number of seconds", args[2])
	}
	p.drilled++
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": "FailoverDrill",
		"metadata": map[string]any{"name": fmt.Sprintf("drill-%d", p.drilled), "finalizers": []any{v1beta1.DrillFinalizer}},
		"spec": map[string]any{
			"scope": map[string]any{"clusters": []any{m.Name}}, "method": args[0], "reason": "a test", "baselineSeconds": int64(5), "holdSeconds": int64(hold), "recoverySeconds": int64(60),
			"allow": []any{v1beta1.DrillDoubleRunning, v1beta1.DrillNotHeld, v1beta1.DrillQuiet, v1beta1.DrillRested}, "guardrails": map[string]any{"minReadyPercent": int64(0), "maxUnplaced": int64(1000)},
		},
	}}
	_, err = p.user.Resource(v1beta1.FailoverDrillsResource).Create(p.ctx, u, metav1.CreateOptions{})
	return err
}

const nothingOfDrills = "nothing of a drill is left"

// Acceptance test 26 of drills: they are among the random steps, and when fleets settle nothing of them is left; 13 to 15 are scenarios drill-isolate-losses and
// drill-isolate-most.

// endDrills deletes all drills, and lets time pass until they are gone.
func endDrills(p *player) error {
	drills := p.user.Resource(v1beta1.FailoverDrillsResource)
	for _, u := range p.Federation.List(v1beta1.FailoverDrillsResource, nil) {
		if valueAt(u, "status.report.marks.injected") != "none" {
			p.tally.inject("drills that were in force, " + valueAt(u, "spec.method"))
		}
		if err := drills.Delete(p.ctx, u.GetName(), metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	if !p.await(func() bool { return len(p.Federation.List(v1beta1.FailoverDrillsResource, nil)) == 0 }) {
		return against(nothingOfDrills, "%s after all were deleted there is %v", patience, p.Federation.List(v1beta1.FailoverDrillsResource, nil)[0].Object["status"])
	}
	p.Pass(time.Second)
	p.tally.check(nothingOfDrills)
	lease := func() *unstructured.Unstructured {
		return p.Federation.Get(leasesResource.GroupVersionResource, v1beta1.FederationNamespace, v1beta1.DrillLease)
	}
	if !p.await(func() bool { return lease() == nil }) { // a request that was stalled may have written it after the end of its drill
		return against(nothingOfDrills, "the Lease is: %v", lease().Object["spec"])
	}
	for name := range p.members {
		c := p.clusters.named(name)
		if c == nil {
			continue
		}
		if mark, err := v1beta1.ParseDrain(c.Annotations[v1beta1.DrainAnnotation]); c.Drill() != nil || err == nil && mark != nil && mark.Drill != "" {
			return against(nothingOfDrills, "cluster %s has %v, %v", name, c.Drill(), c.Annotations)
		}
	}
	return nil
}

// drillOrEndDrills has somebody make a drill, or stop all of them.
func drillOrEndDrills(r *Random) error {
	if r.chance.IntN(6) == 0 && !r.player.uplinks.anySick() { // one that cannot be seen to be deleted goes on
		return r.do("drill end")
	}
	return r.do("drill %s %s %d", []v1beta1.DrillMethod{v1beta1.DrillShift, v1beta1.DrillEvacuate, v1beta1.DrillIsolation, v1beta1.DrillBlackhole}[r.chance.IntN(4)], r.member(), 10+r.chance.IntN(90))
}
