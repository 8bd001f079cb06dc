package views

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

var (
	replicaSets = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
	deployments = appsv1.SchemeGroupVersion.WithKind("Deployment")
	jobs        = batchv1.SchemeGroupVersion.WithKind("Job")
	cronJobs    = batchv1.SchemeGroupVersion.WithKind("CronJob")
)

// Owners find the federated object that a member's pod is of.
type Owners struct {
	stores map[schema.GroupKind]rest.Getter
}

// Add makes objects of a kind be looked up in its storage. It must be called before anything is served.
func (o *Owners) Add(kind schema.GroupKind, store rest.Getter) {
	if o.stores == nil {
		o.stores = map[schema.GroupKind]rest.Getter{}
	}
	o.stores[kind] = store
}

// lookup caches what was found, for one list.
type lookup struct {
	owners *Owners
	found  map[sought]types.UID
}

type sought struct {
	kind            schema.GroupKind
	namespace, name string
}

func (o *Owners) lookup() *lookup { return &lookup{o, map[sought]types.UID{}} }

// uid returns the UID of a federated object, or "".
func (l *lookup) uid(ctx context.Context, kind schema.GroupKind, namespace, name string) types.UID {
	key := sought{kind, namespace, name}
	if uid, ok := l.found[key]; ok {
		return uid
	}
	uid := types.UID("")
	if store := l.owners.stores[kind]; store != nil {
		obj, err := store.Get(request.WithNamespace(ctx, namespace), name, &metav1.GetOptions{ResourceVersion: "0"})
		if err == nil {
			if o, err := meta.Accessor(obj); err == nil {
				uid = o.GetUID()
			}
		}
	}
	l.found[key] = uid
	return uid
}

// setController sets a pod's controller to its federated object, if any: in the member the controller is a copy of that, or was
// made for one. It goes by names, which is all that pods have: a ReplicaSet of a Deployment is named after it and its
// template, a Job of a CronJob after it and the time.
func (l *lookup) setController(ctx context.Context, pod *corev1.Pod) {
	for i := range pod.OwnerReferences {
		ref := &pod.OwnerReferences[i]
		version, err := schema.ParseGroupVersion(ref.APIVersion)
		if err != nil || ref.Controller == nil || !*ref.Controller {
			continue
		}
		kind := version.WithKind(ref.Kind)
		if uid := l.uid(ctx, kind.GroupKind(), pod.Namespace, ref.Name); uid != "" {
			ref.UID = uid
			continue
		}
		above, name := madeFor(pod, kind.GroupKind(), ref.Name)
		if uid := l.uid(ctx, above.GroupKind(), pod.Namespace, name); name != "" && uid != "" {
			ref.APIVersion, ref.Kind, ref.Name, ref.UID = above.GroupVersion().String(), above.Kind, name, uid
		}
	}
}

// inMembers returns the requirements by which members select what the given ones select here. kubectl logs job/NAME selects the pods of a Job by
// its UID, and members' copies of the Job have UIDs of their own: they are asked by its name.
func (o *Owners) inMembers(ctx context.Context, namespace string, requirements labels.Requirements) labels.Requirements {
	if namespace == "" {
		return requirements // in another namespace the name is another Job's
	}
	requirements = slices.Clone(requirements)
	for i, r := range requirements {
		uid, one := r.Values().PopAny()
		if !one || !slices.Contains(jobUIDLabels, r.Key()) || !slices.Contains(equals, r.Operator()) || r.Values().Len() > 1 {
			continue
		}
		name := o.jobName(ctx, namespace, types.UID(uid))
		if byName, err := labels.NewRequirement(batchv1.JobNameLabel, selection.Equals, []string{name}); name != "" && err == nil {
			requirements[i] = *byName
		}
	}
	return requirements
}

var (
	// jobUIDLabels are the labels of pods with their Job's UID, the newer one and the older one.
	jobUIDLabels = []string{batchv1.ControllerUidLabel, "controller-uid"}
	// equals are the operators that select one value.
	equals = []selection.Operator{selection.Equals, selection.DoubleEquals, selection.In}
)

// jobName returns the name of a federated Job, or "".
func (o *Owners) jobName(ctx context.Context, namespace string, uid types.UID) (name string) {
	store, ok := o.stores[jobs.GroupKind()].(rest.Lister)
	if !ok {
		return ""
	}
	list, err := store.List(request.WithNamespace(ctx, namespace), &metainternalversion.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return ""
	}
	_ = meta.EachListItem(list, func(item runtime.Object) error { // it fails only as this does
		if job, err := meta.Accessor(item); err == nil && job.GetUID() == uid {
			name = job.GetName()
		}
		return nil
	})
	return name
}

// madeFor returns what the controller of a pod was made for, by its name, or "".
func madeFor(pod *corev1.Pod, kind schema.GroupKind, name string) (schema.GroupVersionKind, string) {
	switch kind {
	case replicaSets.GroupKind():
		above, hash := cutLast(name)
		if hash != "" && hash == pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] {
			return deployments, above
		}
	case jobs.GroupKind():
		if above, at := cutLast(name); at != "" && strings.Trim(at, "0123456789") == "" {
			return cronJobs, above
		}
	}
	return schema.GroupVersionKind{}, ""
}

// cutLast cuts a name at its last dash.
func cutLast(name string) (before, after string) {
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		return name[:i], name[i+1:]
	}
	return name, ""
}
