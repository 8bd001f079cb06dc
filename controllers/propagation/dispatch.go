package propagation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/held"
	"federation/controllers/propagation/ledger"
	"federation/controllers/propagation/plan"
	"federation/controllers/tracing"
)

// FieldManager is the federation's field manager in members.
const FieldManager = "federation"

// applyOptions are the options of every apply. Without FieldValidation a member parses the body once more to find
// duplicate keys; a field that is not in its schema is an error regardless.
var applyOptions = metav1.PatchOptions{FieldManager: FieldManager, Force: new(true), FieldValidation: metav1.FieldValidationIgnore}

// errForeign means that an object of the name exists that is not ours.
var errForeign = errors.New("an object of this name is there that this federation does not manage; it is left alone")

// dispatcher writes to members, each write with its preconditions.
type dispatcher struct {
	*view
	*hub
	*deletions
}

// operation is what to do with one copy.
type operation struct {
	plan.Step
	have      *unstructured.Unstructured
	federated *unstructured.Unstructured
}

// execute carries out an operation. A copy that is gone is no error.
func (d *dispatcher) execute(ctx context.Context, m *member, k key, op operation) error {
	if op.Verb == plan.Nothing || op.Verb == plan.Wait {
		return nil
	}
	m.writing.Add(1)
	defer m.writing.Add(-1)
	started := time.Now()
	var err error
	switch op.Verb {
	case plan.Create:
		err = d.createCopy(ctx, m, k, op)
	case plan.Update:
		err = d.applyCopy(ctx, m, k, op, preconditionOf(k, op))
	case plan.Delete:
		err = d.deleteCopy(ctx, m, k, op)
	case plan.Release:
		err = d.releaseCopy(ctx, m, k, op.have)
	}
	if apierrors.IsNotFound(err) && op.Verb != plan.Create {
		err = nil // it is gone: the watch will show that
	}
	observeWrite(m.Name, op.Verb, started, err)
	if op.federated != nil {
		d.Spans.Record(op.federated.GetAnnotations(), tracing.Span{Name: "Write to member", Started: started, Err: err, About: append(spanAbout(k), "cluster", m.Name, "operation", string(op.Verb))})
	}
	m.lanes.recordWrite(k, time.Since(started), err)
	return err
}

// preconditionOf returns the precondition of an update: the copy has the observed UID and, if it has pods that are paced, the observed
// version. A process that was paused may have lost the shard meanwhile, and its write would set the number that it knew, even if a label is
// all that it means to change.
func preconditionOf(k key, op operation) plan.Precondition {
	p := plan.Precondition{UID: op.have.GetUID()}
	if k.Kind.Paced {
		p.ResourceVersion = op.have.GetResourceVersion()
	}
	return p
}

// createCopy creates the copy unless an object of that name exists. If that is a copy, we made it and the cache does not
// have it yet: it is updated.
func (d *dispatcher) createCopy(ctx context.Context, m *member, k key, op operation) error {
	if err := d.mayEnter(ctx, m, k); err != nil {
		return err
	}
	err := d.applyCopy(ctx, m, k, op, plan.NotThere)
	if !apierrors.IsConflict(err) {
		return err
	}
	there, getErr := resourceClient(m.Client, k).Get(ctx, k.Name, metav1.GetOptions{})
	if getErr != nil {
		return getErr
	}
	if !d.isCopy(there, k) {
		return errForeign
	}
	if there.GetDeletionTimestamp() != nil {
		return fmt.Errorf("waits for the copy before it to be gone")
	}
	return d.applyCopy(ctx, m, k, op, plan.Precondition{UID: there.GetUID()})
}

// isCopy reports whether an object is our copy. One that lost its label or annotation but still has the hash is ours
// too; one that is marked as another's is not.
func (d *dispatcher) isCopy(there *unstructured.Unstructured, k key) bool {
	if v1beta1.IsCopy(there, k.Kind.GroupKind(), d.Federation) {
		return true
	}
	_, hashed := there.GetAnnotations()[v1beta1.AppliedHashAnnotation]
	label, of := there.GetLabels()[v1beta1.ManagedByLabel], there.GetAnnotations()[v1beta1.CopyOfAnnotation]
	return hashed && (label == "" || label == d.Federation) && (of == "" || of == v1beta1.CopyOf(k.Kind.GroupKind(), k.Namespace, k.Name))
}

// applyCopy sends the desired object with a precondition, and records the result.
func (d *dispatcher) applyCopy(ctx context.Context, m *member, k key, op operation, provided plan.Precondition) error {
	body := op.Want.Body(provided)
	m.Begin(k)
	var write ledger.Write
	defer func() {
		if m.End(k, write) {
			m.queue.Add(k)
		}
	}()
	got, err := m.sendApply(ctx, k, body)
	if err != nil {
		return err
	}
	write = ledger.Write{Copy: got, Settled: settledState(op.Want, got), MissedBefore: plan.MissedBefore(op.Want, op.have)}
	return nil
}

// applier is a client with a cheaper apply: it returns what package held accepts.
type applier interface {
	Apply(ctx context.Context, r schema.GroupVersionResource, name types.NamespacedName, body []byte, o metav1.PatchOptions) (any, error)
}

// sendApply applies an object and returns the result in a form that package held accepts.
func (m *member) sendApply(ctx context.Context, k key, body []byte) (any, error) {
	if a, ok := m.Client.(applier); ok {
		return a.Apply(ctx, k.Kind.Resource, k.NamespacedName, body, applyOptions)
	}
	got, err := resourceClient(m.Client, k).Patch(ctx, k.Name, types.ApplyPatchType, body, applyOptions)
	if err != nil {
		return nil, err
	}
	got.SetManagedFields(nil)
	return got, nil
}

// settledState is plan.Settle of the result of a write.
func settledState(want plan.Desired, got any) string {
	if a, ok := got.(answer); ok && plan.Holds(want, a.Typed()) {
		return ""
	}
	return plan.Settle(want, held.Object(got))
}

// deleteCopy deletes the observed copy, once. If the federated object is missing, or is not the copy's source, it first
// asks the federation itself: a cache is not enough to delete by.
func (d *dispatcher) deleteCopy(ctx context.Context, m *member, k key, op operation) error {
	if m.IsRemoved(k, op.have.GetUID()) {
		return nil
	}
	if op.federated != nil && !plan.Outlived(op.Want.Source, op.have) {
		if op.federated.GetDeletionTimestamp() == nil { // it only moves; deleted since, its copies may have been orphaned
			if err := d.confirmCached(ctx, k, op.federated); err != nil {
				return err
			}
		}
		return d.deleteObserved(ctx, m, k, op)
	}
	if err := d.confirmCached(ctx, k, op.federated); err != nil {
		return err
	}
	fate, err := d.fateOf(ctx, k, op.have)
	if err != nil {
		return err
	}
	if fate == plan.Orphaned {
		return d.releaseCopy(ctx, m, k, op.have)
	}
	if fate == "" && op.federated == nil {
		if err := d.mayDelete(ctx, m, k, op.have); err != nil {
			return err
		}
	}
	if err = d.deleteObserved(ctx, m, k, op); err == nil {
		m.emitEvent(d.Recorder, v1beta1.EventStaleCopyDeleted, "%s is deleted: its object no longer exists at the federation (UID %s)",
			k, op.have.GetAnnotations()[v1beta1.SourceAnnotation])
	}
	return err
}

// deleteObserved deletes the copy if it is still the observed one.
func (d *dispatcher) deleteObserved(ctx context.Context, m *member, k key, op operation) error {
	policy := metav1.DeletePropagationBackground
	if op.Want.Foreground {
		policy = metav1.DeletePropagationForeground
	}
	uid, version := op.have.GetUID(), op.have.GetResourceVersion()
	err := resourceClient(m.Client, k).Delete(ctx, k.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}, PropagationPolicy: &policy,
	})
	if err == nil {
		m.Removed(k, uid)
	}
	return err
}

// releaseCopy removes our marks from a copy. From then on it is not ours to delete, even if the cache still has it.
func (d *dispatcher) releaseCopy(ctx context.Context, m *member, k key, have *unstructured.Unstructured) error {
	uid := have.GetUID()
	if m.IsRemoved(k, uid) {
		return nil
	}
	_, err := resourceClient(m.Client, k).Patch(ctx, k.Name, types.MergePatchType, releasePatch(have), metav1.PatchOptions{FieldManager: FieldManager})
	if err == nil {
		m.Removed(k, uid)
	}
	return err
}

// releasePatch returns the patch that removes our marks from a copy.
func releasePatch(have *unstructured.Unstructured) []byte {
	b, _ := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": have.GetUID(), "resourceVersion": have.GetResourceVersion(),
		"labels":      map[string]any{v1beta1.ManagedByLabel: nil},
		"annotations": map[string]any{v1beta1.AppliedHashAnnotation: nil, v1beta1.CopyOfAnnotation: nil, v1beta1.SourceAnnotation: nil},
	}})
	return b
}
