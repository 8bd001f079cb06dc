package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/resource"
)

// Requests returns what one pod of the object requests of a node, as Kubernetes counts it: with init containers,
// sidecars and overhead; a container with a limit and no request requests its limit. A template that cannot be parsed
// requests nothing.
func (o *Object) Requests() corev1.ResourceList {
	if o.requests != nil || o.template == nil {
		return o.requests
	}
	spec, _ := o.template["spec"].(map[string]any)
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(requestFields(spec), &pod.Spec); err != nil {
		return nil
	}
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			requestLimits(&list[i].Resources)
		}
	}
	o.requests = resource.PodRequests(pod, resource.PodResourcesOptions{})
	return o.requests
}

// Compact decodes Requests and drops the content that they are read from, for callers that keep many objects. A compact
// object has no References.
func (o *Object) Compact() {
	o.Requests()
	o.content, o.template = nil, nil
}

// requestFields keeps the fields of a pod's spec that its requests depend on.
func requestFields(spec map[string]any) map[string]any {
	out := map[string]any{}
	for _, field := range []string{"overhead", "resources"} {
		if v, ok := spec[field]; ok {
			out[field] = v
		}
	}
	for _, field := range []string{"containers", "initContainers"} {
		list, _ := spec[field].([]any)
		var kept []any
		for _, item := range list {
			if c, ok := item.(map[string]any); ok {
				kept = append(kept, map[string]any{"name": c["name"], "resources": c["resources"], "restartPolicy": c["restartPolicy"]})
			}
		}
		if kept != nil {
			out[field] = kept
		}
	}
	return out
}

func requestLimits(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, ok := r.Requests[name]; !ok {
			if r.Requests == nil {
				r.Requests = corev1.ResourceList{}
			}
			r.Requests[name] = limit
		}
	}
}
