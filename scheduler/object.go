package scheduler

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
)

// Object is a federated object, reduced to what decisions need.
type Object struct {
	APIVersion, Kind, Namespace, Name string
	Labels                            map[string]string
	// Divided: its replicas are divided among the clusters. Other objects go to each of their clusters as they are.
	Divided bool
	// Whole: all replicas go to one cluster, and move only if they must.
	Whole bool
	// Volumes: its pods have volumes in their cluster. Elsewhere they would start without their data. Jobs start over
	// anyway.
	Volumes bool
	// Replicas to divide; for a Job its parallelism.
	Replicas int64
	// Preferences by its annotation, or nil.
	Preferences *v1beta1.ReplicaPreferences
	// Selector of clusters by its annotation, or nil.
	Selector labels.Selector
	// Current is the last placement, or nil.
	Current *v1beta1.Placement
	// Pending: it waits for its first placement and goes nowhere before that.
	Pending bool
	// Created is when it was created.
	Created time.Time
	// Finished: it is a finished Job, which is not placed any more.
	Finished bool
	// Made has its pods in clusters that cannot create more, by cluster.
	Made map[string]int64
	// Follow is where its referrers that take it along go; nil if there are none. Followed names them, for the reasons.
	Follow   *Reach
	Followed []string

	replicasField                 string
	preferencesText, selectorText string
	content                       map[string]any // all of it
	template                      map[string]any // of its pods
	requests                      corev1.ResourceList
	hasSpecReplicas               bool
}

// Key returns NAMESPACE/NAME.
func (o *Object) Key() string { return o.Namespace + "/" + o.Name }

// lastReplicas returns the last placement's numbers.
func (o *Object) lastReplicas() map[string]int64 {
	if o.Current == nil {
		return nil
	}
	return o.Current.Clusters
}

// At returns how many replicas the last placement has in a cluster.
func (o *Object) At(cluster string) int64 {
	if o.Current == nil {
		return 0
	}
	return o.Current.Clusters[cluster]
}

// uncreatedPods returns how many of the pods that are requested of a cluster it cannot create.
func (o *Object) uncreatedPods(cluster string, asked int64) int64 {
	made, told := o.Made[cluster]
	if !told {
		return 0
	}
	return max(0, asked-made)
}

// dividedKind returns the row of a divided kind, or nil.
func dividedKind(kind schema.GroupKind) *v1beta1.FederatedKind {
	i := slices.IndexFunc(v1beta1.FederatedKinds, func(k v1beta1.FederatedKind) bool {
		return k.Preferences != "" && k.Kind == kind.Kind && k.Resource.Group == kind.Group
	})
	if i < 0 {
		return nil
	}
	return &v1beta1.FederatedKinds[i]
}

// Preferences returns the preferences annotation of a divided kind, or "".
func Preferences(kind schema.GroupKind) string {
	if k := dividedKind(kind); k != nil {
		return k.Preferences
	}
	return ""
}

// Read decodes a federated object. The error names the invalid annotation.
func Read(u *unstructured.Unstructured) (Object, error) {
	annotations := u.GetAnnotations()
	o := Object{
		APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(), Labels: u.GetLabels(),
		Created: u.GetCreationTimestamp().Time, Pending: annotations[v1beta1.PlacementAnnotation] == v1beta1.PlacementPending,
		Current: v1beta1.ParsePlacement(annotations[v1beta1.PlacementAnnotation]), replicasField: "replicas",
		Whole: v1beta1.IndexedJob(u), Finished: v1beta1.JobEnd(u) != "", Made: v1beta1.ParseCreatedPods(annotations[v1beta1.CreatedPodsAnnotation]),
	}
	spec, _ := u.Object["spec"].(map[string]any)
	o.content = u.Object
	o.template, _ = spec["template"].(map[string]any)
	o.Volumes = o.Kind != "Job" && (claims(spec["volumeClaimTemplates"]) || hasClaims(o.template))
	kind, preferences := dividedKind(u.GroupVersionKind().GroupKind()), ""
	if kind != nil {
		o.Divided, o.replicasField, preferences = true, kind.Replicas, kind.Preferences
	}
	o.Replicas, o.hasSpecReplicas = number(spec[o.replicasField])
	if kind != nil && !o.hasSpecReplicas {
		o.Replicas = 1 // Kubernetes' default
	}
	return o, o.readAnnotations(annotations, preferences)
}

func claims(templates any) bool {
	list, _ := templates.([]any)
	return len(list) > 0
}

// hasClaims reports whether pods of a template use PersistentVolumeClaims, which are local to a cluster.
func hasClaims(template map[string]any) bool {
	spec, _ := template["spec"].(map[string]any)
	volumes, _ := spec["volumes"].([]any)
	return slices.ContainsFunc(volumes, func(item any) bool {
		volume, _ := item.(map[string]any)
		return volume["persistentVolumeClaim"] != nil
	})
}

func (o *Object) readAnnotations(annotations map[string]string, preferences string) error {
	var errs field.ErrorList
	path := field.NewPath("metadata", "annotations")
	if value, ok := annotations[preferences]; ok && preferences != "" {
		o.preferencesText = value
		o.Preferences, errs = v1beta1.ParseReplicaPreferences(value, path.Key(preferences))
	}
	if value, ok := annotations[v1beta1.ClusterSelectorAnnotation]; ok {
		selector, more := v1beta1.ParseClusterSelector(value, path.Key(v1beta1.ClusterSelectorAnnotation))
		o.selectorText, o.Selector, errs = value, selector, append(errs, more...)
	}
	return errs.ToAggregate()
}

func number(value any) (int64, bool) {
	switch n := value.(type) {
	case int64:
		return n, true
	case int32:
		return int64(n), true
	case float64:
		return int64(n), true
	}
	return 0, false
}
