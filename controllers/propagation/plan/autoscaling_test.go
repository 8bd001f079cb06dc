package plan

import (
	"strings"
	"testing"

	"federation/apiserver/apis/federation/v1beta1"
)

const atFederation = `{"clusters":{},"atFederation":true}`

// An autoscaler that stays at the federation goes to no cluster, and leaves those that have it. It owns no copy's number, not even while it
// is being deleted: that is the placement's.
func TestAnAutoscalerAtTheFederationIsNowhere(t *testing.T) {
	a := autoscaler(t, v1beta1.PlacementAnnotation, atFederation)
	a.Placement = Read(a.Object)
	if presence, _, why := a.Wanted(east); presence != Absent || !strings.Contains(why, "for all clusters together") {
		t.Errorf("presence %d (%s), want %d", presence, why, Absent)
	}
	if a.Comes(east) {
		t.Error("it comes")
	}
	deleted := parse(t, `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: shop, deletionTimestamp: "2026-01-02T03:00:00Z"}}`)
	a.Object = deleted
	if a.Comes(east) {
		t.Error("it comes while it is being deleted")
	}
}

// The federation's own controller writes the status of such an autoscaler: the report adds where it goes, and takes nothing away. When it
// has gone back to clusters, what was measured at the federation goes.
func TestTheStatusOfAnAutoscalerAtTheFederationIsLeftAlone(t *testing.T) {
	const status = `
status:
  currentReplicas: 7
  desiredReplicas: 8
  currentMetrics: [{type: Resource, resource: {name: cpu, current: {averageUtilization: 50, averageValue: 50m}}}]
  conditions:
  - {type: AbleToScale, status: "True", reason: ReadyForNewScale, message: recommended size matches current size, lastTransitionTime: "2026-01-02T03:00:00Z"}
`
	object := func(placement string) string {
		return "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web, namespace: shop, uid: u1, annotations: {federation.kubernetes.io/placement: '" + placement + "'}}\nspec: {maxReplicas: 9}" + status
	}
	k := kind(t, "HorizontalPodAutoscaler")
	s := Summarize(k, parse(t, object(atFederation)), []Copy{{Cluster: "east-a", State: Synced}}, "2026-01-03T00:00:00Z")
	conditions, _ := s.Status["conditions"].([]any)
	if len(s.Status) != 1 || len(conditions) != 2 {
		t.Fatalf("the report writes %v", s.Status)
	}
	able, propagated := conditions[0].(map[string]any), conditions[1].(map[string]any)
	if able["status"] != "True" || able["reason"] != "ReadyForNewScale" || able["lastTransitionTime"] != "2026-01-02T03:00:00Z" {
		t.Errorf("the controller's own condition becomes %v", able)
	}
	if propagated["status"] != "True" || propagated["message"] != "it goes to no cluster: the federation acts on it, for all clusters together" {
		t.Errorf("the condition Propagated is %v", propagated)
	}
	back := Summarize(k, parse(t, object(`{"clusters":{"east-a":1}}`)), []Copy{{Cluster: "east-a", State: Synced}}, "2026-01-03T00:00:00Z")
	if metrics, written := back.Status["currentMetrics"]; !written || metrics != nil {
		t.Errorf("back in clusters, it keeps the metrics: %v", back.Status)
	}
}
