package v1beta1

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Reference names a ConfigMap, Secret or ServiceAccount of the namespace of who refers to it.
type Reference struct{ Kind, Name string }

// References are what pods of a template refer to, sorted: by volumes, environment, image pull secrets and service account. The
// service account "default" is not among them: each cluster has its own.
func References(template map[string]any) []Reference {
	spec, _ := template["spec"].(map[string]any)
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
	slices.SortFunc(out, func(a, b Reference) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
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
