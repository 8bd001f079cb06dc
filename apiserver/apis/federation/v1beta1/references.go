package v1beta1

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Reference names a ConfigMap, Secret or ServiceAccount of its referrer's namespace.
type Reference struct{ Kind, Name string }

// Referrer is a row of the table of built-in kinds whose objects refer to others of their namespace.
//
// +k8s:deepcopy-gen=false
// +k8s:openapi-gen=false
type Referrer struct {
	// Resource is what its objects are served as.
	Resource schema.GroupVersionResource
	// Kind is its name.
	Kind string
	// Template is the path of a pod template's spec; "" where it has none.
	Template string
	// Also are references that are not those of a pod.
	Also []ReferencePath
	// Replicas is the path of a number: where it is 0 nothing runs. "" where there is none.
	Replicas string
}

// ReferencePath is where the name of an object of a kind stands. "[]" stands for each item of a list.
//
// +k8s:deepcopy-gen=false
// +k8s:openapi-gen=false
type ReferencePath struct{ Kind, Path string }

const template = "spec.template.spec"

// Referrers are the built-in kinds that refer to others, as clusters have them: pods are included, which are not
// federated.
var Referrers = append(referrersIn(FederatedKinds), Referrer{Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "Pod", Template: "spec"})

func referrersIn(kinds []FederatedKind) (rows []Referrer) {
	for _, k := range kinds {
		if k.Template == "" && k.References == nil {
			continue
		}
		r := Referrer{Resource: k.Resource, Kind: k.Kind, Template: k.Template, Also: k.References}
		if k.Replicas != "" {
			r.Replicas = "spec." + k.Replicas
		}
		rows = append(rows, r)
	}
	return rows
}

// podReferences are what the spec of a pod refers to.
var podReferences = readPaths([]ReferencePath{
	{"ServiceAccount", "serviceAccountName"}, {"ServiceAccount", "serviceAccount"},
	{"Secret", "imagePullSecrets[].name"},
	{"Secret", "volumes[].secret.secretName"}, {"ConfigMap", "volumes[].configMap.name"},
	{"Secret", "volumes[].projected.sources[].secret.name"}, {"ConfigMap", "volumes[].projected.sources[].configMap.name"},
	{"Secret", "volumes[].csi.nodePublishSecretRef.name"}, {"Secret", "volumes[].azureFile.secretName"},
	{"Secret", "volumes[].cephfs.secretRef.name"}, {"Secret", "volumes[].cinder.secretRef.name"},
	{"Secret", "volumes[].flexVolume.secretRef.name"}, {"Secret", "volumes[].iscsi.secretRef.name"},
	{"Secret", "volumes[].rbd.secretRef.name"}, {"Secret", "volumes[].scaleIO.secretRef.name"},
	{"Secret", "volumes[].storageos.secretRef.name"},
	{"Secret", "containers[].envFrom[].secretRef.name"}, {"ConfigMap", "containers[].envFrom[].configMapRef.name"},
	{"Secret", "containers[].env[].valueFrom.secretKeyRef.name"}, {"ConfigMap", "containers[].env[].valueFrom.configMapKeyRef.name"},
	{"Secret", "initContainers[].envFrom[].secretRef.name"}, {"ConfigMap", "initContainers[].envFrom[].configMapRef.name"},
	{"Secret", "initContainers[].env[].valueFrom.secretKeyRef.name"}, {"ConfigMap", "initContainers[].env[].valueFrom.configMapKeyRef.name"},
	{"Secret", "ephemeralContainers[].envFrom[].secretRef.name"}, {"ConfigMap", "ephemeralContainers[].envFrom[].configMapRef.name"},
	{"Secret", "ephemeralContainers[].env[].valueFrom.secretKeyRef.name"}, {"ConfigMap", "ephemeralContainers[].env[].valueFrom.configMapKeyRef.name"},
})

// referrers are the rows, read, by their kind.
var referrers = readReferrers(Referrers)

// referrer is a row, read.
//
// +k8s:deepcopy-gen=false
// +k8s:openapi-gen=false
type referrer struct {
	template, replicas []string
	also               []readPath
}

// readPath is a ReferencePath, taken apart.
//
// +k8s:deepcopy-gen=false
// +k8s:openapi-gen=false
type readPath struct {
	kind string
	path []string
}

func readReferrers(rows []Referrer) map[schema.GroupKind]referrer {
	out := map[schema.GroupKind]referrer{}
	for _, r := range rows {
		out[schema.GroupKind{Group: r.Resource.Group, Kind: r.Kind}] = referrer{takenApart(r.Template), takenApart(r.Replicas), readPaths(r.Also)}
	}
	return out
}

func readPaths(paths []ReferencePath) []readPath {
	out := make([]readPath, 0, len(paths))
	for _, p := range paths {
		out = append(out, readPath{p.Kind, takenApart(strings.ReplaceAll(p.Path, "[]", ".[]"))})
	}
	return out
}

func takenApart(path string) []string {
	if path == "" {
		return nil
	}
	return strings.Split(path, ".")
}

// custom is the row of all kinds that are in no other: many have a pod template where workloads have theirs.
var custom = referrer{template: takenApart(template)}

// Refers reports whether objects of a kind may refer to others.
func Refers(kind schema.GroupKind) bool {
	_, ok := referrers[kind]
	return ok || !hasFederatedKind(kind)
}

func hasFederatedKind(kind schema.GroupKind) bool {
	return slices.ContainsFunc(FederatedKinds, func(k FederatedKind) bool { return k.Kind == kind.Kind && k.Resource.Group == kind.Group })
}

// References returns the ConfigMaps, Secrets and ServiceAccounts that an object refers to, sorted. The service account
// "default" is not among them: each cluster has its own.
func References(kind schema.GroupKind, object map[string]any) []Reference {
	if !Refers(kind) {
		return nil
	}
	row, ok := referrers[kind]
	if !ok {
		row = custom
	}
	found := references{}
	for _, p := range row.also {
		found.walk(p.kind, object, p.path)
	}
	if row.template != nil {
		found.pod(valueAt(object, row.template))
	}
	if len(found) == 0 {
		return nil
	}
	out := slices.Collect(maps.Keys(found))
	slices.SortFunc(out, func(a, b Reference) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return out
}

// Idle reports whether an object that refers to others runs nothing: it has no replicas, or its pods have ended.
func Idle(kind schema.GroupKind, object map[string]any) bool {
	if kind == podKind {
		phase := valueAt(object, podPhase)
		return phase == "Succeeded" || phase == "Failed"
	}
	switch n := valueAt(object, referrers[kind].replicas).(type) {
	case int64:
		return n == 0
	case float64:
		return n == 0
	}
	return false
}

var (
	podKind  = schema.GroupKind{Kind: "Pod"}
	podPhase = []string{"status", "phase"}
)

// valueAt returns the value at a path, or nil.
func valueAt(value any, path []string) any {
	for _, field := range path {
		m, _ := value.(map[string]any)
		value = m[field]
	}
	return value
}

type references map[Reference]bool

func (r references) pod(spec any) {
	if spec == nil {
		return
	}
	for _, p := range podReferences {
		r.walk(p.kind, spec, p.path)
	}
}

// walk adds the names at a path.
func (r references) walk(kind string, value any, path []string) {
	if len(path) == 0 {
		if name, _ := value.(string); name != "" && (kind != "ServiceAccount" || name != defaultAccount) {
			r[Reference{kind, name}] = true
		}
		return
	}
	if path[0] == "[]" {
		list, _ := value.([]any)
		for _, item := range list {
			r.walk(kind, item, path[1:])
		}
		return
	}
	if m, ok := value.(map[string]any); ok && m[path[0]] != nil {
		r.walk(kind, m[path[0]], path[1:])
	}
}

// Confined reports whether objects of a resource go only where their referrers go, or where a policy or an annotation
// says: they hold credentials, and are of no use elsewhere.
func Confined(resource schema.GroupResource) bool {
	return resource.Group == "" && (resource.Resource == "secrets" || resource.Resource == "serviceaccounts")
}

// ConfinedKinds are the confined kinds.
var ConfinedKinds = map[string]bool{"Secret": true, "ServiceAccount": true}
