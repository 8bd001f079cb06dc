package revisions

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"federation/controllers/held"
	"federation/controllers/revisions/plan"
)

const fieldManager = "federation-revisions"

// write brings the revisions of a workload from what there are to what plan wants: what is wanted first, then what is not.
func (c *Controller) write(ctx context.Context, k *kind, u *unstructured.Unstructured, have []*unstructured.Unstructured) error {
	there := map[string]*unstructured.Unstructured{}
	revisions := make([]plan.Revision, 0, len(have))
	for _, r := range have {
		there[r.GetName()] = r
		revisions = append(revisions, read(r))
	}
	want, current := plan.Decide(workload(u), revisions)
	to := c.Client.Resource(k.revisions).Namespace(u.GetNamespace())
	var errs []error
	for _, w := range want {
		r := there[w.Name]
		delete(there, w.Name)
		if r == nil {
			made, err := to.Create(ctx, k.revision(u, w), metav1.CreateOptions{FieldManager: fieldManager})
			if err != nil {
				errs = append(errs, c.refused(u, k, w, err))
				continue
			}
			r = made
		}
		errs = append(errs, k.update(ctx, to, r, w))
		if k.revisions == replicaSets && w.Name == current {
			errs = append(errs, c.number(ctx, k, u, w))
		}
	}
	for _, r := range there {
		errs = append(errs, remove(ctx, to, r))
	}
	return errors.Join(ignoringGone(errs)...)
}

// refused tells of a revision that cannot be made, as where a quota is used up.
func (c *Controller) refused(u *unstructured.Unstructured, k *kind, w plan.Revision, err error) error {
	if !isGone(err) {
		c.Recorder.Eventf(u, corev1.EventTypeWarning, "FailedCreate", "%s %s, the revision of its template: %v", k.revisionKind, w.Name, err)
	}
	return err
}

// ignoringGone leaves errors out that the caches will explain: it is gone, or its namespace ends.
func ignoringGone(errs []error) []error {
	return slices.DeleteFunc(errs, isGone)
}

func isGone(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// update changes what differs of a revision that is there.
func (k *kind) update(ctx context.Context, to dynamic.ResourceInterface, r *unstructured.Unstructured, w plan.Revision) error {
	is := read(r)
	if is.Number != w.Number || is.Replicas != w.Replicas || !maps.Equal(is.Annotations, w.Annotations) {
		about := map[string]any{"uid": r.GetUID(), "annotations": differing(is.Annotations, w.Annotations)}
		patch := map[string]any{"metadata": about, "revision": w.Number}
		if k.revisions == replicaSets {
			about["annotations"].(map[string]any)[plan.RevisionAnnotation] = number(w.Number)
			patch = map[string]any{"metadata": about, "spec": map[string]any{"replicas": w.Replicas}}
		}
		changed, err := apply(ctx, to, r.GetName(), patch)
		if err != nil {
			return err
		}
		r = changed
	}
	observed, _, _ := unstructured.NestedInt64(r.Object, "status", "observedGeneration")
	if k.revisions != replicaSets || read(r).Status == w.Status && observed == r.GetGeneration() {
		return nil
	}
	_, err := apply(ctx, to, r.GetName(), map[string]any{"metadata": map[string]any{"uid": r.GetUID()}, "status": map[string]any{
		"replicas": w.Status.Replicas, "fullyLabeledReplicas": w.Status.Replicas, "readyReplicas": w.Status.Ready, "availableReplicas": w.Status.Available,
		"observedGeneration": r.GetGeneration(),
	}}, "status")
	return err
}

// differing is the merge patch of annotations.
func differing(is, want map[string]string) map[string]any {
	patch := map[string]any{}
	for key := range is {
		if _, wanted := want[key]; !wanted {
			patch[key] = nil
		}
	}
	for key, value := range want {
		if was, there := is[key]; !there || was != value {
			patch[key] = value
		}
	}
	return patch
}

// number writes the number of a Deployment's revision on it, for `kubectl rollout status --revision` and people.
func (c *Controller) number(ctx context.Context, k *kind, u *unstructured.Unstructured, w plan.Revision) error {
	if u.GetAnnotations()[plan.RevisionAnnotation] == number(w.Number) {
		return nil
	}
	_, err := apply(ctx, c.Client.Resource(k.resource).Namespace(u.GetNamespace()), u.GetName(), map[string]any{
		"metadata": map[string]any{"uid": u.GetUID(), "annotations": map[string]any{plan.RevisionAnnotation: number(w.Number)}},
	})
	return err
}

// apply merges a patch into the object of its UID.
func apply(ctx context.Context, to dynamic.ResourceInterface, name string, patch map[string]any, subresources ...string) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	return to.Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: fieldManager}, subresources...)
}

// forget deletes a revision that nothing controls any more, as after `kubectl delete --cascade=orphan`. It would stay for ever.
func (c *Controller) forget(ctx context.Context, k key) error {
	obj, there, err := c.Kept(k.orphaned).GetStore().GetByKey(k.String())
	if err != nil || !there {
		return err
	}
	u := held.Object(obj)
	if ownerOf(u).UID != "" {
		return nil
	}
	return errors.Join(ignoringGone([]error{remove(ctx, c.Client.Resource(k.orphaned).Namespace(k.Namespace), u)})...)
}

// remove deletes a revision as it was seen.
func remove(ctx context.Context, to dynamic.ResourceInterface, u *unstructured.Unstructured) error {
	uid, version := u.GetUID(), u.GetResourceVersion()
	return to.Delete(ctx, u.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
}
