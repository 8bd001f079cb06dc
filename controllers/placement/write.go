package placement

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
	"federation/apiserver/apis/resourceversion"
	"federation/scheduler"
)

const (
	// writeTimeout bounds one write to the federation.
	writeTimeout = 30 * time.Second
	// retryAfter is the delay before deciding an object again whose placement was another than expected.
	retryAfter = time.Second
)

// intent is a decision on its way to the object, until the caches have it.
type intent struct {
	u     *unstructured.Unstructured // the version that was decided
	value string                     // of the annotation; "" for none
	was   string                     // the value that it replaces
	first bool                       // there was no placement before
	quiet bool                       // without an event
	// takesOver: see scheduler.Decision. It holds for a later decision, too, as long as this one is not written.
	takesOver bool
	decision  scheduler.Decision
	done      bool // it is written,
	left      resourceversion.Left
}

// intents are the intents of all objects.
type intents struct {
	sync.Mutex
	of map[key]*intent
}

func (i *intents) put(k key, in *intent) {
	i.Lock()
	defer i.Unlock()
	in.was, in.takesOver = placementOf(in.u), in.decision.TakesOver
	if before := i.of[k]; before != nil && before.u.GetUID() == in.u.GetUID() {
		if in.was = before.was; before.done {
			in.was = before.value
		} else {
			in.takesOver = (in.takesOver || before.takesOver) && in.decision.Placement.AtFederation
		}
	}
	i.of[k] = in
}

func (i *intents) get(k key) *intent {
	i.Lock()
	defer i.Unlock()
	return i.of[k]
}

func (i *intents) drop(k key) {
	i.Lock()
	defer i.Unlock()
	delete(i.of, k)
}

// dropThis forgets an intent, unless another one has replaced it.
func (i *intents) dropThis(k key, in *intent) {
	i.Lock()
	defer i.Unlock()
	if i.of[k] == in {
		delete(i.of, k)
	}
}

func (i *intents) recordVersion(in *intent, version string) {
	i.Lock()
	defer i.Unlock()
	in.done, in.left = true, resourceversion.LeftAt(resourceversion.Parse(version))
}

// newerPlacement returns the placement that was decided for an object, if the caches do not have it yet.
func (i *intents) newerPlacement(k key, u *unstructured.Unstructured) (value string, ok bool) {
	i.Lock()
	defer i.Unlock()
	in := i.of[k]
	if in == nil {
		return "", false
	}
	if in.u.GetUID() != u.GetUID() || placementOf(u) == in.value || in.done && !in.left.Unseen(u) {
		delete(i.of, k)
		return "", false
	}
	return in.value, true
}

// isCached reports whether an object has the placement that was decided for it.
func (i *intents) isCached(k key, u *unstructured.Unstructured) bool {
	i.Lock()
	defer i.Unlock()
	in := i.of[k]
	if in == nil || in.u.GetUID() != u.GetUID() || placementOf(u) != in.value {
		return false
	}
	delete(i.of, k)
	return true
}

// writeIntent writes the last decision about an object: one patch.
func (c *Controller) writeIntent(ctx context.Context, k key) error {
	in := c.intents.get(k)
	if in == nil || in.done {
		return nil
	}
	if in.takesOver {
		ready, err := c.takeOver(ctx, k, in.u)
		if err != nil {
			return err
		}
		if !ready {
			c.write.AddAfter(k, retryAfter)
			return nil
		}
	}
	version, err := c.patchPlacement(ctx, k, in)
	switch {
	case apierrors.IsNotFound(err):
		c.intents.dropThis(k, in)
		return nil
	case apierrors.IsInvalid(err) || apierrors.IsConflict(err):
		c.intents.dropThis(k, in) // the object was replaced or is written by many, or its placement was changed: by another process, or by a write whose response was lost
		c.decide.AddAfter(k, retryAfter)
		return nil
	case err != nil:
		klog.FromContext(ctx).Error(err, "Cannot write the placement; will retry", "resource", k.resource.Resource, "object", k.NamespacedName)
		return err
	}
	c.intents.recordVersion(in, version)
	observeWritten(in)
	c.emitEvents(in)
	return nil
}

// patchPlacement writes the placement to the object that it was decided for, by UID, and only over the placement that it was
// decided from: a former leader that does not know yet overwrites nothing newer. A removed placement is written as "".
func (c *Controller) patchPlacement(ctx context.Context, k key, in *intent) (version string, err error) {
	body, err := json.Marshal(in.operations())
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	u, err := c.Client.Resource(k.resource).Namespace(k.Namespace).Patch(ctx, k.Name, types.JSONPatchType, body, metav1.PatchOptions{FieldManager: "federation-placement"})
	if err != nil {
		return "", err
	}
	return u.GetResourceVersion(), nil
}

// operations returns the patch (RFC 6902).
func (in *intent) operations() []map[string]any {
	const annotations = "/metadata/annotations"
	key := annotations + "/" + strings.ReplaceAll(v1beta1.PlacementAnnotation, "/", "~1")
	operations := []map[string]any{{"op": "test", "path": "/metadata/uid", "value": in.u.GetUID()}}
	switch {
	case in.was != "" || hasPlacement(in.u):
		operations = append(operations, map[string]any{"op": "test", "path": key, "value": in.was})
	case in.u.GetAnnotations() == nil:
		return append(operations, map[string]any{"op": "test", "path": annotations, "value": nil},
			map[string]any{"op": "add", "path": annotations, "value": map[string]any{v1beta1.PlacementAnnotation: in.value}})
	default:
		operations = append(operations, map[string]any{"op": "test", "path": key, "value": nil})
	}
	return append(operations, map[string]any{"op": "add", "path": key, "value": in.value})
}

func hasPlacement(u *unstructured.Unstructured) bool {
	_, there := u.GetAnnotations()[v1beta1.PlacementAnnotation]
	return there
}

// emitEvents emits events about a decision. If very many objects moved at once, only about unschedulable replicas.
func (c *Controller) emitEvents(in *intent) {
	d := &in.decision
	if !in.first && d.Moved != "" && !in.quiet {
		c.Recorder.Event(in.u, corev1.EventTypeNormal, "ReplicasMoved", d.Moved+" ("+d.Cause+")")
	}
	if d.Placement.Unschedulable > 0 {
		c.Recorder.Eventf(in.u, corev1.EventTypeWarning, "InsufficientCapacity", "%s in no cluster", phrase.Subject(d.Placement.Unschedulable, "replica", "fits", "fit"))
	}
	switch {
	case d.Unreferred && !in.quiet:
		c.Recorder.Event(in.u, corev1.EventTypeNormal, "Unreferenced", "In no cluster: "+scheduler.Unreferred)
	case len(d.Placement.Notes) > 0 && !d.Unreferred:
		c.Recorder.Event(in.u, corev1.EventTypeWarning, "PlacementConstraintsNotMet", strings.Join(d.Placement.Notes, "; "))
	}
}
