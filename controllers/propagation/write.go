package propagation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/record"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/held"
	"federation/controllers/propagation/plan"
)

// FieldManager is the name under which the federation applies to members.
const FieldManager = "federation"

// applyOptions are those of every apply. Without FieldValidation a member parses the body once more, to look for keys that
// are there twice; a field that its schema does not have is an error all the same.
var applyOptions = metav1.PatchOptions{FieldManager: FieldManager, Force: new(true), FieldValidation: metav1.FieldValidationIgnore}

// foreignRetry is how often we look whether a foreign object has made room.
const foreignRetry = 30 * time.Second

// errForeign says that an object of the name is there that is not ours.
var errForeign = errors.New("an object of this name is there that this federation does not manage; it is left as it is")

// syncMember brings one object to what is wanted in one member.
func (c *Controller) syncMember(ctx context.Context, m *member, k key) error {
	if !c.owns(k) {
		return c.lookAtOthers(ctx, m, k)
	}
	if !m.ready(k.kind) { // once it is, all of the kind is looked at
		if m.note(k, look{outcome: plan.Unreachable, message: fmt.Sprintf("its objects of kind %s cannot be listed", k.kind.Kind)}) {
			c.report(k)
		}
		return nil
	}
	op := operation{federated: c.lookup(k), want: plan.Desired{Reason: "the Cluster has not been seen yet"}}
	have, settled, err := c.observe(ctx, m, k, op.federated)
	if op.have = have; err != nil {
		return c.conclude(m, k, conclusion{operation: op, err: err})
	}
	if target, known := c.target(m); known || op.federated == nil {
		target.Have = have
		if k.kind.Siblings && have == nil {
			target.Siblings = c.siblings(m, k)
		}
		source := c.source(k, op.federated)
		target.Scaled = c.scaled(m, source, target)
		if target.Needed, err = c.needed(ctx, m, source, target, k); err != nil {
			return c.conclude(m, k, conclusion{operation: op, err: err})
		}
		if target.Floor, err = c.floor(ctx, m, source, target, k); err != nil {
			return c.conclude(m, k, conclusion{operation: op, err: err})
		}
		op.want, op.held = c.allowed(m, source, target, k)
	}
	op.verb = plan.Operate(op.want, have, settled)
	if op.verb == plan.Create && !hasFinalizers(op.federated) {
		op.verb = plan.Wait // put on by admission, or by the report for objects older than that
	}
	if op.verb == plan.Create {
		if why := c.postponed(m, k); why != "" {
			op.verb, op.want = plan.Wait, plan.Desired{Reason: why}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.WriteTimeout)
	defer cancel()
	return c.conclude(m, k, conclusion{operation: op, err: c.operate(ctx, m, k, op)})
}

// postponed is why a copy is not to be created yet; "": it may be.
func (c *Controller) postponed(m *member, k key) string {
	switch {
	case c.namespaceGoes(k):
		return "its namespace is being deleted" // and so will be the object
	case c.awaitsNamespace(m, k):
		return "waits for its namespace" // which wakes it
	}
	left, why := m.pauses(k, time.Now())
	if left > 0 {
		m.queue.AddAfter(k, left)
	}
	return why
}

// awaitsNamespace reports whether the namespace of an object is still to come to a member: to try before is a write for nothing,
// and thousands of them would stand before the namespace.
func (c *Controller) awaitsNamespace(m *member, k key) bool {
	ns, federated := c.namespaceOf(k)
	if federated == nil {
		return false
	}
	if have, _ := m.observe(ns); have != nil {
		return false
	}
	target, known := c.target(m)
	return known && m.comes(ns) && c.source(ns, federated).Goes(target)
}

// namespaceGoes reports whether the namespace of an object is being deleted. Members delete what is in it: what goes there is not made
// again, nor reported.
func (c *Controller) namespaceGoes(k key) bool {
	_, federated := c.namespaceOf(k)
	return federated != nil && federated.GetDeletionTimestamp() != nil
}

// namespaceOf returns the federated namespace of an object; nil where there is none.
func (c *Controller) namespaceOf(k key) (key, *unstructured.Unstructured) {
	kind := c.kindOf(namespaces)
	if kind == nil || k.Namespace == "" {
		return key{}, nil
	}
	ns := key{kind, types.NamespacedName{Name: k.Namespace}}
	return ns, c.lookup(ns)
}

// siblings returns the copies that other members hold of an object.
func (c *Controller) siblings(m *member, k key) map[string]*unstructured.Unstructured {
	c.mu.RLock()
	defer c.mu.RUnlock()
	out := map[string]*unstructured.Unstructured{}
	for name, other := range c.members {
		if u, _ := other.observe(k); u != nil && other != m {
			out[name] = u
		}
	}
	return out
}

// operation is what is to be done with one copy.
type operation struct {
	verb      plan.Verb
	want      plan.Desired
	have      *unstructured.Unstructured
	federated *unstructured.Unstructured
	held      string // what it waits for where want is not yet what is wanted in the end
}

func (c *Controller) operate(ctx context.Context, m *member, k key, op operation) error {
	if op.verb == plan.Nothing || op.verb == plan.Wait {
		return nil
	}
	m.writing.Add(1)
	defer m.writing.Add(-1)
	started := time.Now()
	var err error
	switch op.verb {
	case plan.Create:
		err = c.create(ctx, m, k, op)
	case plan.Update:
		err = c.apply(ctx, m, k, op, provided(k, op))
	case plan.Delete:
		err = c.delete(ctx, m, k, op)
	case plan.Release:
		err = c.release(ctx, m, k, op.have)
	}
	if apierrors.IsNotFound(err) && op.verb != plan.Create {
		err = nil // it is gone: the watch will say so
	}
	observeWrite(m.Name, op.verb, started, err)
	m.lanes.wrote(k, time.Since(started), err)
	return err
}

// provided is what has to be so for an update to be carried out: the copy is the one that was observed and, where pods come or go with
// what is written, as it was then. A process that was paused may have lost the shard meanwhile: what it was about to write is of before.
func provided(k key, op operation) plan.Precondition {
	p := plan.Precondition{UID: op.have.GetUID()}
	if k.kind.Paced && plan.ChangesPods(op.want, op.have, k.kind.Divided) {
		p.ResourceVersion = op.have.GetResourceVersion()
	}
	return p
}

// create makes the copy unless an object of that name is there. One that is a copy was made by us and has not reached
// the cache: it is brought up to date.
func (c *Controller) create(ctx context.Context, m *member, k key, op operation) error {
	err := c.apply(ctx, m, k, op, plan.NotThere)
	if !apierrors.IsConflict(err) {
		return err
	}
	there, getErr := resource(m.Client, k).Get(ctx, k.Name, metav1.GetOptions{})
	if getErr != nil {
		return getErr
	}
	if !c.isCopy(there, k) {
		return errForeign
	}
	if there.GetDeletionTimestamp() != nil {
		return fmt.Errorf("waits for the copy before it to be gone")
	}
	return c.apply(ctx, m, k, op, plan.Precondition{UID: there.GetUID()})
}

// isCopy reports whether an object is our copy. One that lost a mark (somebody took the label off, or the annotation) but still has
// the hash is ours too; one that is marked as another's is not.
func (c *Controller) isCopy(there *unstructured.Unstructured, k key) bool {
	if v1beta1.IsCopy(there, k.kind.GroupKind(), c.Federation) {
		return true
	}
	_, hashed := there.GetAnnotations()[v1beta1.AppliedHashAnnotation]
	label, of := there.GetLabels()[v1beta1.ManagedByLabel], there.GetAnnotations()[v1beta1.CopyOfAnnotation]
	return hashed && (label == "" || label == c.Federation) && (of == "" || of == v1beta1.CopyOf(k.kind.GroupKind(), k.Namespace, k.Name))
}

// apply sends the desired object with a precondition, and notes what came of it.
func (c *Controller) apply(ctx context.Context, m *member, k key, op operation, provided plan.Precondition) error {
	body := op.want.Body(provided)
	m.applies(k)
	defer func() {
		if m.applied(k) {
			m.queue.Add(k)
		}
	}()
	got, err := m.send(ctx, k, body)
	if err != nil {
		return err
	}
	m.wrote(k, got, settled(op.want, got))
	return nil
}

// applier is a client that applies at less cost than others: it returns what package held takes.
type applier interface {
	Apply(ctx context.Context, r schema.GroupVersionResource, name types.NamespacedName, body []byte, o metav1.PatchOptions) (any, error)
}

// send applies an object and returns what came of it, as package held takes it.
func (m *member) send(ctx context.Context, k key, body []byte) (any, error) {
	if a, ok := m.Client.(applier); ok {
		return a.Apply(ctx, k.kind.Resource, k.NamespacedName, body, applyOptions)
	}
	got, err := resource(m.Client, k).Patch(ctx, k.Name, types.ApplyPatchType, body, applyOptions)
	if err != nil {
		return nil, err
	}
	got.SetManagedFields(nil)
	return got, nil
}

// settled is plan.Settle of what came of a write.
func settled(want plan.Desired, got any) string {
	if a, ok := got.(answer); ok && plan.Holds(want, a.Typed()) {
		return ""
	}
	return plan.Settle(want, held.Object(got))
}

// delete deletes the copy that was observed, once. Where the federated object is missing, or is another
// one than the copy was made of, the federation itself is asked first: a cache is not enough to delete by.
func (c *Controller) delete(ctx context.Context, m *member, k key, op operation) error {
	if m.hasParted(k, op.have.GetUID()) {
		return nil
	}
	if op.federated != nil && !plan.Outlived(op.want.Source, op.have) {
		return c.deleteObserved(ctx, m, k, op)
	}
	if err := c.confirm(ctx, k, op.federated); err != nil {
		return err
	}
	fate, err := c.fateOf(ctx, k, op.have)
	if err != nil {
		return err
	}
	if fate == plan.Orphaned {
		return c.release(ctx, m, k, op.have)
	}
	if fate == "" && op.federated == nil {
		if err := c.mayDelete(ctx, m, k, op.have); err != nil {
			return err
		}
	}
	if err = c.deleteObserved(ctx, m, k, op); err == nil {
		m.event(c.Recorder, v1beta1.EventStaleCopyDeleted, "%s is deleted: it is a copy of an object that is not at the federation any more (UID %s)",
			k, op.have.GetAnnotations()[v1beta1.SourceAnnotation])
	}
	return err
}

// event is about what is done in a member that no federated object stands for.
func (m *member) event(to record.EventRecorder, reason, format string, args ...any) {
	to.Eventf(aboutCluster(m.Name), corev1.EventTypeNormal, reason, format, args...)
}

// aboutCluster is a Cluster as events need it.
func aboutCluster(name string) *v1beta1.Cluster {
	return &v1beta1.Cluster{TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "Cluster"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// deleteObserved deletes the copy if it is still the one that was observed.
func (c *Controller) deleteObserved(ctx context.Context, m *member, k key, op operation) error {
	policy := metav1.DeletePropagationBackground
	if op.want.Foreground {
		policy = metav1.DeletePropagationForeground
	}
	uid, version := op.have.GetUID(), op.have.GetResourceVersion()
	err := resource(m.Client, k).Delete(ctx, k.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}, PropagationPolicy: &policy,
	})
	if err == nil {
		m.parted(k, uid)
	}
	return err
}

// release takes our marks off a copy. From then on it is not ours to delete, though the cache may have it still.
func (c *Controller) release(ctx context.Context, m *member, k key, have *unstructured.Unstructured) error {
	uid := have.GetUID()
	if m.hasParted(k, uid) {
		return nil
	}
	_, err := resource(m.Client, k).Patch(ctx, k.Name, types.MergePatchType, releasePatch(have), metav1.PatchOptions{FieldManager: FieldManager})
	if err == nil {
		m.parted(k, uid)
	}
	return err
}

// confirm asks the federation whether what the cache has, nil for nothing, is still so.
func (c *Controller) confirm(ctx context.Context, k key, cached *unstructured.Unstructured) error {
	there, err := resource(c.Client, k).Get(ctx, k.Name, metav1.GetOptions{})
	switch {
	case cached == nil && apierrors.IsNotFound(err), err == nil && cached != nil && there.GetUID() == cached.GetUID():
		return nil
	case err == nil || apierrors.IsNotFound(err):
		return fmt.Errorf("the cache has not seen %s yet", k)
	}
	return err
}

// releasePatch takes our marks off a copy.
func releasePatch(have *unstructured.Unstructured) []byte {
	b, _ := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": have.GetUID(), "resourceVersion": have.GetResourceVersion(),
		"labels":      map[string]any{v1beta1.ManagedByLabel: nil},
		"annotations": map[string]any{v1beta1.AppliedHashAnnotation: nil, v1beta1.CopyOfAnnotation: nil, v1beta1.SourceAnnotation: nil},
	}})
	return b
}

// conclusion is how a look at one object in one member ended.
type conclusion struct {
	operation
	err error
	// leaving: the object is to be nowhere, and waits for its copies to be gone.
	leaving bool
}

// conclude notes the outcome, reports it if it is news, and says whether to try again.
func (c *Controller) conclude(m *member, k key, end conclusion) error {
	if end.federated == nil && end.have == nil && end.err == nil {
		m.forget(k)
		return nil
	}
	end.leaving = end.federated != nil && (end.federated.GetDeletionTimestamp() != nil || k.kind.ByPolicy && !plan.Placed(end.federated))
	now := end.look()
	if now.outcome == plan.Conflict {
		m.queue.AddAfter(k, foreignRetry)
	}
	if m.note(k, now) {
		c.reportOrFinish(k)
		if end.federated != nil {
			c.wakeDependents(m, k, end.federated)
		}
	}
	if now.outcome == plan.Conflict || errors.Is(end.err, errHeld) {
		return nil
	}
	return end.err
}

// wakeDependents has those objects looked at in a member that depend on one of which something became known there.
func (c *Controller) wakeDependents(m *member, k key, federated *unstructured.Unstructured) {
	switch {
	case k.kind.Resource == namespaces && !m.comes(k):
		c.wakeNamespace(m, k.Name)
	case k.kind.Resource == autoscalers:
		c.wakeScaled(m, federated)
	}
}

// look is what is remembered of a conclusion.
func (end conclusion) look() look {
	now := look{outcome: plan.Synced, outdated: end.outdated()}
	switch {
	case errors.Is(end.err, errForeign):
		now.outcome, now.message = plan.Conflict, end.err.Error()
	case end.err != nil && refused(end.err):
		now.outcome, now.message = plan.Rejected, end.err.Error()
	case end.err != nil:
		now.outcome, now.message = plan.Pending, end.err.Error()
	case end.want.Refusal != "":
		now.outcome, now.message = plan.Rejected, end.want.Refusal
	case end.want.Presence == plan.Undecided:
		now.outcome, now.message = plan.Pending, end.want.Reason
	case end.verb == plan.Wait, end.verb == plan.Delete, end.verb == plan.Release:
		now.outcome, now.message = plan.Pending, fmt.Sprintf("%s: waits for it to be done", end.verb)
	case end.held != "":
		now.outcome, now.message = plan.Progressing, end.held
	}
	now.message = v1beta1.Printable(now.message) // what a member says of a refusal may be megabytes, and is kept
	if end.federated != nil {
		now.generation = end.federated.GetGeneration()
		if end.leaving && end.have == nil && end.err == nil {
			now.left = end.federated.GetUID()
		}
	}
	return now
}

// outdated reports whether the copy is left with another pod template than the federated object has.
func (end conclusion) outdated() bool {
	if end.have == nil {
		return false
	}
	return end.want.Kept || end.want.Refusal != "" || end.err != nil && end.want.Object != nil && !plan.SameTemplate(end.want, end.have)
}

// refused reports whether the member understood and said no: it will say so again. An answer 500 without a
// reason is what an apply gets that cannot be merged, such as one with two environment variables of a name.
func refused(err error) bool {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return false // it will be gone soon
	}
	var answer apierrors.APIStatus
	if errors.As(err, &answer) && answer.Status().Code == http.StatusInternalServerError && answer.Status().Reason == metav1.StatusReasonUnknown {
		return true
	}
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) ||
		apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsMethodNotSupported(err)
}

func resource(client dynamic.Interface, k key) dynamic.ResourceInterface {
	r := client.Resource(k.kind.Resource)
	if k.Namespace == "" {
		return r
	}
	return r.Namespace(k.Namespace)
}
