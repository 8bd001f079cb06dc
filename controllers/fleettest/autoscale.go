package fleettest

import (
	"context"
	"encoding/json"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

var autoscalers = autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers")

// autoscale carries out the HorizontalPodAutoscalers of the cluster: each wants what its target is loaded with, within
// its bounds. As Kubernetes does, it leaves a target with 0 replicas alone.
func (m *Member) autoscale() {
	for _, scaler := range m.API.List(autoscalers, nil) {
		w, u := targetOf(m, scaler)
		if u == nil {
			continue
		}
		k := workloadKey{w.resource.Resource, u.GetNamespace(), u.GetName()}
		has := w.wanted(u, m)
		want := m.autoscaling.wish(m, scaler, k, has)
		m.writeStatus(autoscalers, scaler, map[string]any{
			"observedGeneration": scaler.GetGeneration(), "currentReplicas": int64(has), "desiredReplicas": int64(want),
		})
		if has == want {
			continue
		}
		m.autoscaling.scaled[k] = true
		body, _ := json.Marshal(map[string]any{"spec": map[string]any{"replicas": want}}) // never fails
		// It may be gone by now.
		_, _ = m.kubelet.Resource(w.resource).Namespace(k.namespace).Patch(context.Background(), k.name, types.MergePatchType, body,
			metav1.PatchOptions{FieldManager: "kube-controller-manager"}, "scale")
	}
}

// targetOf finds the workload that an autoscaler scales; nil where there is none.
func targetOf(m *Member, scaler *unstructured.Unstructured) (workload, *unstructured.Unstructured) {
	ref, _, _ := unstructured.NestedStringMap(scaler.Object, "spec", "scaleTargetRef")
	i := slices.IndexFunc(workloads, func(w workload) bool { return kindOf(w.resource.Resource) == ref["kind"] })
	if i < 0 {
		return workload{}, nil
	}
	return workloads[i], m.API.Get(workloads[i].resource, scaler.GetNamespace(), ref["name"])
}

// wish is the number that an autoscaler wants.
func (a *autoscaling) wish(m *Member, scaler *unstructured.Unstructured, k workloadKey, has int) int {
	if has == 0 {
		return 0
	}
	least, most := number("minReplicas")(scaler, m), number("maxReplicas")(scaler, m)
	if load, ok := a.load[k]; ok {
		has = load
	}
	return min(max(has, least), most)
}

// isAutoscaled reports whether an autoscaler of the member has a workload as its target.
func isAutoscaled(m *Member, k workloadKey) bool { return len(autoscalersOf(m, k)) > 0 }

func autoscalersOf(m *Member, k workloadKey) []*unstructured.Unstructured {
	return slices.DeleteFunc(m.API.List(autoscalers, nil), func(scaler *unstructured.Unstructured) bool {
		w, u := targetOf(m, scaler)
		return u == nil || k != workloadKey{w.resource.Resource, u.GetNamespace(), u.GetName()}
	})
}

// setLoad carries out load CLUSTER KIND/NAME N: the workload is loaded there so that its autoscaler, if it has one, wants N replicas.
func setLoad(p *player, args []string) error {
	m, t, n, err := p.memberObjectNumber(args, "load CLUSTER KIND/NAME N")
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	m.autoscaling.load[t.workload()] = n
	m.seen = 0
	return nil
}
