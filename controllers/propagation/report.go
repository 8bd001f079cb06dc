package propagation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/held"
	"federation/controllers/propagation/plan"
)

// reporter keeps the status of federated objects up to date, and removes the finalizers of those that are being
// deleted.
type reporter struct {
	*view
	*members
	*hub
	reports workqueue.TypedRateLimitingInterface[key]
	dues    *statusLimiter
	pending sync.Map // key → time since when a copy has been pending, for kinds without conditions
	ready   seenReady
	told    sync.Map // key → cluster → message of the last event, so that each is emitted once
}

func newReporter(v *view, s *members, h *hub) *reporter {
	return &reporter{
		view: v, members: s, hub: h, dues: newStatusLimiter(v.Reports),
		reports: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[key](50*time.Millisecond, 30*time.Second)),
	}
}

// syncReport writes the total of its copies to the federated object: one patch, if it changed. It releases an object
// that is being deleted once its copies are gone.
func (r *reporter) syncReport(ctx context.Context, k key) error {
	if !r.owns(k) {
		return nil
	}
	if yes, again := r.dues.isSettled(k, time.Now()); !yes {
		if again > 0 {
			r.reports.AddAfter(k, again)
		}
		return nil
	}
	obj := r.packedObject(k) // nothing is unpacked before its turn
	if obj == nil {
		r.forget(k)
		return nil
	}
	known := held.About(obj)
	if r.awaitsOurPatch(k, known) {
		r.reports.AddAfter(k, settleTime)
		return nil
	}
	pending := r.initialSyncPending(k, time.Now())
	leaves := known.GetDeletionTimestamp() != nil || k.Kind.ByPolicy && !plan.Placed(held.Object(obj))
	switch {
	case !leaves && !hasFinalizers(known):
		return r.addFinalizers(ctx, k, known)
	case !leaves && r.namespaceTerminates(k):
		return nil
	case pending > 0:
		r.reports.AddAfter(k, pending) // or sooner: when a member is engaged, all that it has synced is reported
		return nil
	case leaves:
		return r.removeFinalizers(ctx, k, known)
	}
	return r.reportInTurn(ctx, k, obj)
}

// reportInTurn writes the status, or waits for the object's turn.
func (r *reporter) reportInTurn(ctx context.Context, k key, obj any) error {
	takesTurns := !k.Kind.Endpoints
	if takesTurns && !r.dues.acquire(k) {
		return nil
	}
	federated := held.Object(obj)
	copies := r.copiesOf(k, federated)
	r.hidePending(k, federated, copies)
	r.emitEvents(federated, k, copies)
	r.traceReady(k, federated, copies)
	summary := plan.Summarize(k.Kind, federated, copies, time.Now().UTC().Format(time.RFC3339))
	if k.Kind.Scale != nil {
		summary.Status = plan.ScaleStatus(r.sourceOf(k, federated), copies)
	}
	if summary.Empty() {
		if takesTurns {
			r.dues.unspent.Add(1)
		}
		return nil
	}
	if k.Kind.Status == nil && len(summary.Annotations) > 0 { // of a custom kind a patch of the status changes nothing else
		err := r.write(ctx, k, plan.Summary{Annotations: summary.Annotations})
		if summary.Annotations = nil; err != nil || summary.Empty() {
			return err
		}
	}
	return r.write(ctx, k, summary, "status")
}

// write writes a summary to an object, or to its status.
func (r *reporter) write(ctx context.Context, k key, summary plan.Summary, subresources ...string) error {
	body, err := json.Marshal(summary.Patch())
	if err != nil {
		return err
	}
	return r.patch(ctx, k, types.MergePatchType, body, subresources...)
}

// forget drops what is known of a deleted object.
func (r *reporter) forget(k key) {
	r.patched.Delete(k)
	r.told.Delete(k)
	r.pending.Delete(k)
	r.dues.forget(k)
	r.ready.forget(k)
}

// notedAfter is how long a copy may be pending or progressing before an object of a kind without conditions has a note
// of it.
const notedAfter = 10 * time.Second

// hidePending treats, for kinds without conditions, copies that have not been pending or progressing for long as synced:
// to add and remove the note would be two writes for each object that is created or moved. An existing note stays: a
// process that has just taken over the object does not know how long it has been so.
func (r *reporter) hidePending(k key, federated *unstructured.Unstructured, copies []plan.Copy) {
	pending := func(one plan.Copy) bool { return one.State == plan.Pending || one.State == plan.Progressing }
	if !k.Kind.Notes() || !slices.ContainsFunc(copies, pending) {
		r.pending.Delete(k)
		return
	}
	if federated.GetAnnotations()[v1beta1.PropagatedAnnotation] != "" {
		return
	}
	since, _ := r.pending.LoadOrStore(k, time.Now())
	left := time.Until(since.(time.Time).Add(notedAfter))
	if left <= 0 {
		return
	}
	r.reports.AddAfter(k, left)
	for i := range copies {
		if pending(copies[i]) {
			copies[i].State = plan.Synced
		}
	}
}

const (
	// initialSync is how long a ready member may take to be engaged and synced.
	initialSync = patience + 5*time.Second
	// addressesSync is the same for an object with addresses and a member that is engaged: what other members have of it
	// goes into DNS and must not wait for one that does not answer.
	addressesSync = time.Second
)

// initialSyncPending returns how long to delay a report while a ready member is still being engaged: to call it
// unreachable, or its copy pending, would be two useless writes.
func (r *reporter) initialSyncPending(k key, now time.Time) time.Duration {
	for _, u := range r.clusters() {
		since, most := r.started, initialSync
		if m := r.member(u.GetName()); m != nil {
			if m.Synced(k) {
				continue
			}
			if since = m.joined; k.Kind.Endpoints {
				most = addressesSync
			}
		}
		if left := since.Add(most).Sub(now); left > 0 && plan.IsReady(u) {
			return left
		}
	}
	return 0
}

// copiesOf returns what is known of an object in each cluster that it goes to, sorted by cluster; and in one that it no
// longer goes to, while something of it is there.
func (r *reporter) copiesOf(k key, federated *unstructured.Unstructured) (copies []plan.Copy) {
	source, clusters := r.sourceOf(k, federated), r.clusters()
	slices.SortFunc(clusters, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	for _, u := range clusters {
		target := plan.Target{Cluster: asTarget(u)}
		goes, name := source.Goes(target), target.Cluster.Name
		if m := r.member(name); m != nil {
			if one, _ := m.copyOf(k); goes || one.Object != nil || one.State != plan.Synced {
				r.countUnmade(k, m, source, &one)
				one.LoadBalancers = target.Cluster.Spec.LoadBalancerCIDRs
				copies = append(copies, one)
			}
		} else if goes {
			copies = append(copies, plan.Copy{Cluster: name, State: plan.Unreachable, Message: "the cluster is not reachable", Alone: r.onlyWeMiss(k, u, time.Now())})
		}
	}
	return copies
}

// aloneAfter is how long this process may fail to reach a cluster that the federation reaches, until its state of it
// counts as stale (ADR 87): longer than it takes to agree that the cluster is lost, or to engage it again.
const aloneAfter = 20 * time.Second

// onlyWeMiss reports whether this process has not reached a cluster for a while that the federation reaches. An object whose
// addresses there count is reported again when that time comes.
func (r *reporter) onlyWeMiss(k key, cluster *unstructured.Unstructured, now time.Time) bool {
	if !k.Kind.Addresses || !plan.IsReached(cluster) {
		return false
	}
	left := r.awaySince(cluster.GetName()).Add(aloneAfter).Sub(now)
	if left > 0 {
		r.reports.AddAfter(k, left)
	}
	return left <= 0
}

// countUnmade counts the pods that a cluster has been unable to create for long enough, or schedules a report for that
// time. The member says since when; where its clock is ahead, what counts is when we saw it. Those that have been counted
// go on counting, also after a restart.
func (r *reporter) countUnmade(k key, m *member, source plan.Source, one *plan.Copy) {
	if !k.Kind.Failure {
		return
	}
	pods, since := plan.Unmade(one.Object, source.Share(one.Cluster))
	if seen := m.Failing(k, pods > 0, time.Now()); seen.Before(since) {
		since = seen
	}
	_, counted := v1beta1.ParseCreatedPods(source.Object.GetAnnotations()[v1beta1.CreatedPodsAnnotation])[one.Cluster]
	if left := time.Until(since.Add(r.Unmade)); pods > 0 && left > 0 && !counted {
		r.reports.AddAfter(k, left)
	} else {
		one.Unmade = pods
	}
}

// emitEvents emits events about rejected operations and foreign objects, once each.
func (r *reporter) emitEvents(federated *unstructured.Unstructured, k key, copies []plan.Copy) {
	value, _ := r.told.Load(k)
	before, _ := value.(map[string]string)
	now := map[string]string{}
	for _, one := range copies {
		if one.State != plan.Rejected && one.State != plan.Conflict {
			continue
		}
		text := fmt.Sprintf("Cluster %s: %s", one.Cluster, one.Message)
		if now[one.Cluster] = text; before[one.Cluster] != text {
			r.Recorder.Event(federated, corev1.EventTypeWarning, "Propagation"+string(one.State), text)
		}
	}
	if len(now) == 0 {
		r.told.Delete(k)
		return
	}
	r.told.Store(k, now)
}

// clearing is how long records are kept at least after a member has been engaged: until its stale copies are gone.
const clearing = 10 * time.Minute

// removeFinalizers removes our finalizers from an object that is being deleted when no reachable member has a copy of it any
// more. Unreachable members are cleared when they return.
func (r *reporter) removeFinalizers(ctx context.Context, k key, federated held.Named) error {
	if !slices.ContainsFunc(federated.GetFinalizers(), isOurs) {
		return nil
	}
	engaged, cleared := map[string]bool{}, true
	for _, m := range r.all() {
		cleared = cleared && time.Since(m.joined) > clearing
		if !m.cacheSynced(k.Kind) {
			continue // as good as unreachable: no copy can have been created
		}
		engaged[m.Name] = true
		if _, left := m.copyOf(k); left != federated.GetUID() {
			return nil // its queue has the key, and its outcome brings us here again
		}
	}
	if err := r.recordEnd(ctx, k, federated, engaged, cleared); err != nil {
		return err
	}
	return r.setFinalizers(ctx, k, federated, slices.DeleteFunc(slices.Clone(federated.GetFinalizers()), isOurs))
}

// recordEnd records the deletion of an object if a copy of it may turn up later that could not be told from others.
// cleared: the engaged members have been for long enough to have no stale copies.
func (r *reporter) recordEnd(ctx context.Context, k key, federated held.Named, engaged map[string]bool, cleared bool) error {
	if federated.GetDeletionTimestamp() == nil {
		return nil // it should only be nowhere
	}
	away := slices.ContainsFunc(r.clusters(), func(u *unstructured.Unstructured) bool { return !engaged[u.GetName()] })
	switch {
	case slices.Contains(federated.GetFinalizers(), v1beta1.OrphanMarkFinalizer):
		return r.recordDeletion(ctx, k, federated.GetUID(), plan.Orphaned, away || !cleared)
	case away:
		return r.recordDeletion(ctx, k, federated.GetUID(), plan.Deleted, true)
	}
	return nil
}
