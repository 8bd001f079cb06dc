package admission

import (
	"context"
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"

	"federation/apiserver/apis/federation/v1beta1"
)

// TryOverrides applies a policy's overrides to an object that it selects, as for each cluster. The error says what does
// not work, and for which clusters.
type TryOverrides func(policy *v1beta1.PlacementPolicy, object *unstructured.Unstructured) error

// Limits of the time to try a policy. Each copy is tried again within limits of its own: what is missed here costs
// nobody else anything.
const (
	tryFor     = time.Second
	tryObjects = 20 // of each kind
)

// warnOfOverrides tries new and changed overrides on existing objects, and warns about one of each kind that they fail
// on. That is no reason to reject the policy: the objects may be about to change, too.
func (w *warner) warnOfOverrides(ctx context.Context, a admission.Attributes) (texts []string) {
	policy, ok := a.GetObject().(*v1beta1.PlacementPolicy)
	if !ok || w.tryOverrides == nil || w.objects == nil || len(policy.Spec.Overrides) == 0 {
		return nil
	}
	if old, ok := a.GetOldObject().(*v1beta1.PlacementPolicy); ok && old != nil && reflect.DeepEqual(old.Spec, policy.Spec) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	for i := range policy.Spec.ResourceSelectors {
		if text := w.tryOn(ctx, policy, &policy.Spec.ResourceSelectors[i]); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// tryOn returns what of the overrides does not work for an object that one of the policy's selectors selects.
func (w *warner) tryOn(ctx context.Context, policy *v1beta1.PlacementPolicy, s *v1beta1.ResourceSelector) string {
	for _, kind := range v1beta1.FederatedKinds {
		if kind.Kind != s.Kind || kind.Resource.GroupVersion().String() != s.APIVersion {
			continue
		}
		list, err := w.objects.Resource(kind.Resource).Namespace(policy.Namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0", Limit: tryObjects})
		if err != nil {
			return "" // a warning is not worth an error
		}
		for i := range min(len(list.Items), tryObjects) {
			u := &list.Items[i]
			if ctx.Err() != nil || !s.Selects(s.GroupKind(), u.GetName(), u.GetLabels()) {
				continue
			}
			if err := w.tryOverrides(policy, u); err != nil {
				return fmt.Sprintf("%s %s: %s", s.Kind, u.GetName(), v1beta1.Printable(err.Error()))
			}
		}
	}
	return ""
}
