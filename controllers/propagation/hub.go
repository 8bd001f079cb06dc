package propagation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/resourceversion"
	"federation/controllers/held"
)

// hub is the federation's API: writes, and reads for which a cache is not enough.
type hub struct {
	view    *view
	patched sync.Map // key → resourceversion.Left by our last patch of the federated object
}

// patch patches the federated object and records the new version.
func (h *hub) patch(ctx context.Context, k key, kind types.PatchType, body []byte, subresources ...string) error {
	got, err := resourceClient(h.view.Client, k).Patch(ctx, k.Name, kind, body, metav1.PatchOptions{FieldManager: FieldManager}, subresources...)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	after := resourceversion.Of(got)
	if got.GetDeletionTimestamp() != nil && len(got.GetFinalizers()) == 0 {
		after++ // the object went with the patch; the response has the version before
	}
	h.patched.Store(k, resourceversion.LeftAt(after))
	if h.view.packedObject(k) == nil {
		h.patched.Delete(k) // the object is gone, and the cache knows
	}
	return nil
}

// isOurPatch reports whether our last patch made a version of a federated object, which then needs no handling.
func (h *hub) isOurPatch(k key, u held.Named) bool {
	v, ok := h.patched.Load(k)
	return ok && v.(resourceversion.Left).Is(u)
}

// awaitsOurPatch reports whether a version of a federated object is older than our last patch, which the cache has yet
// to see.
func (h *hub) awaitsOurPatch(k key, u held.Named) bool {
	v, ok := h.patched.Load(k)
	return ok && v.(resourceversion.Left).Unseen(u)
}

// confirmCached checks with the federation that the cached object, nil for none, is current: it is there, and is being deleted only
// if the cache says so.
func (h *hub) confirmCached(ctx context.Context, k key, cached *unstructured.Unstructured) error {
	there, err := resourceClient(h.view.Client, k).Get(ctx, k.Name, metav1.GetOptions{})
	switch {
	case cached == nil && apierrors.IsNotFound(err), err == nil && cached != nil && there.GetUID() == cached.GetUID() && (there.GetDeletionTimestamp() == nil) == (cached.GetDeletionTimestamp() == nil):
		return nil
	case err == nil || apierrors.IsNotFound(err):
		return fmt.Errorf("the cache has not seen %s yet", k)
	}
	return err
}

func isOurs(finalizer string) bool {
	return finalizer == v1beta1.DeleteFromClustersFinalizer || finalizer == v1beta1.OrphanMarkFinalizer
}

func hasFinalizers(u held.Named) bool {
	return slices.Contains(u.GetFinalizers(), v1beta1.DeleteFromClustersFinalizer)
}

// addFinalizers adds our finalizers to an object that is older than the admission plugin that does.
func (h *hub) addFinalizers(ctx context.Context, k key, federated held.Named) error {
	return h.setFinalizers(ctx, k, federated, slices.Compact(slices.Sorted(slices.Values(append(
		slices.Clone(federated.GetFinalizers()), v1beta1.DeleteFromClustersFinalizer, v1beta1.OrphanFinalizer)))))
}

func (h *hub) setFinalizers(ctx context.Context, k key, federated held.Named, finalizers []string) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"finalizers": finalizers, "resourceVersion": federated.GetResourceVersion(), "uid": federated.GetUID(),
	}})
	if err != nil {
		return err
	}
	return h.patch(ctx, k, types.MergePatchType, body)
}

func resourceClient(client dynamic.Interface, k key) dynamic.ResourceInterface {
	r := client.Resource(k.Kind.Resource)
	if k.Namespace == "" {
		return r
	}
	return r.Namespace(k.Namespace)
}
