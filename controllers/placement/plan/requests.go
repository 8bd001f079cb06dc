package plan

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/resource"
)

// Requests are what one pod of the object asks of a node, counted as Kubernetes counts it: with init containers,
// sidecars and overhead; where a container has a limit and no request, the limit is its request. A template that
// cannot be read asks for nothing.
func (o *Object) Requests() corev1.ResourceList {
	if o.requests != nil || o.template == nil {
		return o.requests
	}
	spec, _ := o.template["spec"].(map[string]any)
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(asking(spec), &pod.Spec); err != nil {
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

// asking keeps, of a pod's spec, what its requests depend on.
func asking(spec map[string]any) map[string]any {
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

// Reference names a ConfigMap, Secret or ServiceAccount of the namespace of who refers to it.
type Reference struct{ Kind, Name string }

// References are what the pods of a workload refer to, sorted: by volumes, environment, image pull secrets and
// service account. The service account "default" is not among them: each cluster has its own.
func (o *Object) References() []Reference {
	spec, _ := o.template["spec"].(map[string]any)
	if spec == nil {
		return nil
	}
	pod := corev1.PodSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &pod); err != nil {
		return nil
	}
	found := references{}
	found.add("ServiceAccount", pod.ServiceAccountName)
	for _, s := range pod.ImagePullSecrets {
		found.add("Secret", s.Name)
	}
	for i := range pod.Volumes {
		found.volume(&pod.Volumes[i].VolumeSource)
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		found.environment(&c)
	}
	out := slices.Collect(maps.Keys(found))
	slices.SortFunc(out, func(a, b Reference) int { return compareStrings(a.Kind, b.Kind, a.Name, b.Name) })
	return out
}

type references map[Reference]bool

func (r references) add(kind, name string) {
	if name != "" && (kind != "ServiceAccount" || name != "default") {
		r[Reference{kind, name}] = true
	}
}

func (r references) volume(v *corev1.VolumeSource) {
	if v.ConfigMap != nil {
		r.add("ConfigMap", v.ConfigMap.Name)
	}
	if v.Secret != nil {
		r.add("Secret", v.Secret.SecretName)
	}
	if v.CSI != nil && v.CSI.NodePublishSecretRef != nil {
		r.add("Secret", v.CSI.NodePublishSecretRef.Name)
	}
	if v.Projected == nil {
		return
	}
	for _, s := range v.Projected.Sources {
		if s.ConfigMap != nil {
			r.add("ConfigMap", s.ConfigMap.Name)
		}
		if s.Secret != nil {
			r.add("Secret", s.Secret.Name)
		}
	}
}

func (r references) environment(c *corev1.Container) {
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef != nil {
			r.add("ConfigMap", from.ConfigMapRef.Name)
		}
		if from.SecretRef != nil {
			r.add("Secret", from.SecretRef.Name)
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			continue
		}
		if k := e.ValueFrom.ConfigMapKeyRef; k != nil {
			r.add("ConfigMap", k.Name)
		}
		if k := e.ValueFrom.SecretKeyRef; k != nil {
			r.add("Secret", k.Name)
		}
	}
}
