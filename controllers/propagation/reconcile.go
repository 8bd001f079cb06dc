package propagation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/propagation/ledger"
	"federation/controllers/propagation/plan"
)

// foreignRetry is the period of checking whether a foreign object is gone.
const foreignRetry = 30 * time.Second

// syncMember takes one object to its desired state in one member: snapshot, decision, write, outcome.
func (c *Controller) syncMember(ctx context.Context, m *member, k key) error {
	if !c.owns(k) {
		return c.syncOthers(ctx, m, k)
	}
	if !m.cacheSynced(k.Kind) { // once it is synced, so are all objects of the kind
		if m.Record(k, ledger.Outcome{State: plan.Unreachable, Message: fmt.Sprintf("its objects of kind %s cannot be listed", k.Kind.Kind)}) {
			c.enqueueReport(k)
		}
		return nil
	}
	snapshot, err := c.snapshots.take(ctx, m, k)
	op := operation{have: snapshot.Target.Have, federated: snapshot.Source.Object}
	if err != nil {
		return c.recordResult(m, k, syncResult{operation: op, err: err})
	}
	op.Step = c.nextStep(m, k, snapshot)
	ctx, cancel := context.WithTimeout(ctx, c.WriteTimeout)
	defer cancel()
	err = c.dispatch.execute(ctx, m, k, op)
	if err == nil && op.Verb == plan.Update && plan.LeftByAutoscaler(op.have) {
		m.queue.AddAfter(k, time.Second) // the number is ours again: the mark goes with the next write
	}
	if isRejected(err) || errors.Is(err, errForeign) {
		c.release(m, k)
	}
	return c.recordResult(m, k, syncResult{operation: op, err: err})
}

// release gives back what a write that did not happen had reserved, and wakes the copies that wait for it.
func (c *Controller) release(m *member, k key) {
	if m.Release(k).GivesBack(ledger.Reservation{}) {
		c.wakeOthers(k, m)
	}
}

// nextStep returns the next step. Steps of one object that depend on other members are decided one at a time, and reserve
// what they take from the others; a write that failed may have reserved more than the next one does.
func (c *Controller) nextStep(m *member, k key, snapshot plan.Snapshot) plan.Step {
	if !snapshot.DependsOnMembers() {
		c.release(m, k)
		c.setWaiting(k, m.Name, snapshot.Target.Needed != "")
		return plan.Next(snapshot)
	}
	mutex := c.lock(k)
	mutex.Lock()
	defer mutex.Unlock()
	c.setWaiting(k, m.Name, true)
	before := m.Release(k)
	step := plan.Next(c.snapshots.withMembers(snapshot, m, k))
	now := ledger.Reservation{Replicas: step.Replicas, Template: step.Template}
	m.Reserve(k, now)
	if step.WaitsFor == "" {
		c.setWaiting(k, m.Name, false)
	}
	if before.GivesBack(now) {
		c.wakeOthers(k, m)
	}
	return step
}

// othersTime is how long another process has to make a copy that our objects wait for.
const othersTime = 5 * time.Second

// recordOthersReport records that no copy of another process' object will come to a member, if that process has reported so: whoever takes over a shard
// need not wait to find it out.
func (c *Controller) recordOthersReport(m *member, k key) {
	federated := c.object(k)
	if federated == nil {
		return
	}
	said := v1beta1.ParseOutOfSync(federated.GetAnnotations()[v1beta1.OutOfSyncAnnotation]).In(m.Name)
	if have, _ := m.Observe(k); have == nil && said != nil && (said.Reason == string(plan.Rejected) || said.Reason == string(plan.Conflict)) {
		m.Record(k, ledger.Outcome{State: plan.Conflict})
	}
}

// syncOthers records whether a copy that another process owns may still come to a member, and if not enqueues what
// depends on it: our objects depend on their namespace and on their autoscaler. The member's informer shows whether the
// copy exists. That there will be none, because the member rejects it or has a foreign object of the name, only the
// other process knows. So it gets some time, and then we ask the member.
func (c *Controller) syncOthers(ctx context.Context, m *member, k key) error {
	federated := c.object(k)
	if !OfAllShards(k.Kind.Resource) || federated == nil {
		m.Forget(k)
		return nil
	}
	now := ledger.Outcome{State: plan.Synced}
	have, _ := m.Observe(k)
	if target, known := c.clusterTarget(m); have == nil && known && c.sourceOf(k, federated).Goes(target) {
		now.State = plan.Conflict
	}
	if now.State == plan.Conflict && k.Kind.Resource == namespaces { // in one that is not there nothing can be created
		ctx, cancel := context.WithTimeout(ctx, c.WriteTimeout)
		defer cancel()
		if _, err := resourceClient(m.Client, k).Get(ctx, k.Name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			m.queue.AddAfter(k, othersTime)
			return nil
		} else if err != nil {
			return err
		}
	}
	if m.Record(k, now) {
		c.dependentsOf(k, m, federated)
	}
	return nil
}

// syncResult is how a sync of one object in one member ended.
type syncResult struct {
	operation
	err error
	// leaving: the object should be nowhere, and waits for its copies to go.
	leaving bool
}

// recordResult records the outcome, reports it if it changed, and returns an error to retry.
func (c *Controller) recordResult(m *member, k key, end syncResult) error {
	if end.federated == nil && end.have == nil && end.err == nil {
		m.Forget(k)
		return nil
	}
	end.leaving = end.federated != nil && (end.federated.GetDeletionTimestamp() != nil || k.Kind.ByPolicy && !plan.Placed(end.federated))
	now := end.outcome()
	if now.State == plan.Conflict {
		m.queue.AddAfter(k, foreignRetry)
	}
	if m.Record(k, now) {
		c.reportOrFinish(k)
		if end.federated != nil {
			c.dependentsOf(k, m, end.federated)
		}
	}
	if now.State == plan.Conflict || errors.Is(end.err, errHeld) {
		return nil
	}
	return end.err
}

// outcome returns what the ledger keeps of a sync.
func (end syncResult) outcome() ledger.Outcome {
	now := ledger.Outcome{State: plan.Synced, Outdated: end.keepsOldTemplate()}
	switch {
	case errors.Is(end.err, errForeign):
		now.State, now.Message = plan.Conflict, end.err.Error()
	case end.err != nil && isRejected(end.err):
		now.State, now.Message = plan.Rejected, end.err.Error()
	case end.err != nil:
		now.State, now.Message = plan.Pending, end.err.Error()
	case end.Want.Refusal != "":
		now.State, now.Message = plan.Rejected, end.Want.Refusal
	case end.Want.Presence == plan.Undecided:
		now.State, now.Message = plan.Pending, end.Want.Reason
	case end.Verb == plan.Wait, end.Verb == plan.Delete, end.Verb == plan.Release:
		now.State, now.Message = plan.Pending, fmt.Sprintf("%s: waits for it to be done", end.Verb)
	case end.WaitsFor != "":
		now.State, now.Message = plan.Progressing, end.WaitsFor
	}
	now.Message = v1beta1.Printable(now.Message) // a member's message may be megabytes long, and is kept
	if end.federated != nil {
		now.Generation = end.federated.GetGeneration()
		if end.leaving && end.have == nil && end.err == nil {
			now.Left = end.federated.GetUID()
		}
	}
	return now
}

// keepsOldTemplate reports whether the copy keeps a pod template other than the federated object's.
func (end syncResult) keepsOldTemplate() bool {
	if end.have == nil {
		return false
	}
	return end.Want.Kept || end.Want.Refusal != "" || end.err != nil && end.Want.Object != nil && !plan.SameTemplate(end.Want, end.have)
}

// isRejected reports whether the member understood the request and rejected it: it will reject it again. An apply that
// cannot be merged, such as one with two environment variables of one name, gets a 500 without a reason.
func isRejected(err error) bool {
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
