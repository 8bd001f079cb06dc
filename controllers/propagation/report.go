package propagation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/resourceversion"
	"federation/controllers/held"
	"federation/controllers/propagation/plan"
)

// syncReport writes to the federated object what its copies sum up to: one patch, if it changed. An
// object that is being deleted is let go once its copies are.
func (c *Controller) syncReport(ctx context.Context, k key) error {
	if !c.owns(k) {
		return nil
	}
	if yes, again := c.dues.settled(k, time.Now()); !yes {
		if again > 0 {
			c.reports.AddAfter(k, again)
		}
		return nil
	}
	obj := c.held(k) // nothing is unpacked before it is its turn
	if obj == nil {
		c.patched.Delete(k)
		c.reported.Delete(k)
		c.pending.Delete(k)
		c.dues.drop(k)
		return nil
	}
	known := held.About(obj)
	if v, ok := c.patched.Load(k); ok && v.(resourceversion.Left).Unseen(known) {
		c.reports.AddAfter(k, settleTime) // the cache has not seen our own patch yet
		return nil
	}
	taking := c.takingUp(k, time.Now())
	if known.GetDeletionTimestamp() != nil || k.kind.ByPolicy && !plan.Placed(held.Object(obj)) {
		if taking > 0 { // nobody has looked yet whether there is a copy
			c.reports.AddAfter(k, taking)
			return nil
		}
		return c.finish(ctx, k, known)
	}
	if !hasFinalizers(known) {
		return c.setFinalizers(ctx, k, known, slices.Compact(slices.Sorted(slices.Values(append(
			slices.Clone(known.GetFinalizers()), v1beta1.DeleteFromClustersFinalizer, v1beta1.OrphanFinalizer)))))
	}
	if c.namespaceGoes(k) {
		return nil
	}
	if taking > 0 {
		c.reports.AddAfter(k, taking) // or sooner: a member that is taken up reports all that it has looked at
		return nil
	}
	takesTurns := !k.kind.Endpoints
	if takesTurns && !c.dues.takeTurn(k) {
		return nil
	}
	federated := held.Object(obj)
	copies := c.copies(k, federated)
	c.overlook(k, federated, copies)
	c.events(federated, k, copies)
	summary := plan.Summarize(k.kind, federated, copies, time.Now().UTC().Format(time.RFC3339))
	if summary.Empty() {
		if takesTurns {
			c.dues.unspent.Add(1)
		}
		return nil
	}
	body, err := json.Marshal(summary.Patch())
	if err != nil {
		return err
	}
	if k.kind.Status == nil {
		return c.patch(ctx, k, types.MergePatchType, body)
	}
	return c.patch(ctx, k, types.MergePatchType, body, "status")
}

// notedAfter is how long a copy may be pending, or moving, before that is noted on an object of a kind without conditions.
const notedAfter = 10 * time.Second

// overlook takes, for kinds without conditions, what has not been pending or moving for long for in place: to note it, and to
// take the note off again, would be two writes for each object that is made or moved. What is noted already stays noted: a process
// that has just taken the object over does not know for how long it has been so.
func (c *Controller) overlook(k key, federated *unstructured.Unstructured, copies []plan.Copy) {
	pending := func(one plan.Copy) bool { return one.State == plan.Pending || one.State == plan.Progressing }
	if !k.kind.Notes() || !slices.ContainsFunc(copies, pending) {
		c.pending.Delete(k)
		return
	}
	if federated.GetAnnotations()[v1beta1.PropagatedAnnotation] != "" {
		return
	}
	since, _ := c.pending.LoadOrStore(k, time.Now())
	left := time.Until(since.(time.Time).Add(notedAfter))
	if left <= 0 {
		return
	}
	c.reports.AddAfter(k, left)
	for i := range copies {
		if pending(copies[i]) {
			copies[i].State = plan.Synced
		}
	}
}

// takingUp returns how long a report still waits for members that are said to be ready and are being taken up: to
// call these unreachable, or their copies pending, would be two writes for nothing.
func (c *Controller) takingUp(k key, now time.Time) time.Duration {
	for _, obj := range c.Informers(v1beta1.ClustersResource).GetStore().List() {
		u, since := held.Object(obj), c.started
		if m := c.member(u.GetName()); m != nil {
			if m.looked(k) {
				continue
			}
			since = m.joined
		}
		if left := since.Add(patience + 5*time.Second).Sub(now); left > 0 && plan.IsReady(u) {
			return left
		}
	}
	return 0
}

// copies returns what is known of an object in each cluster that it goes to, sorted by cluster; and of one that
// it no longer goes to, while something of it is there.
func (c *Controller) copies(k key, federated *unstructured.Unstructured) (copies []plan.Copy) {
	clusters := c.Informers(v1beta1.ClustersResource).GetStore().List()
	slices.SortFunc(clusters, func(a, b any) int { return strings.Compare(held.Object(a).GetName(), held.Object(b).GetName()) })
	source := c.source(k, federated)
	for _, obj := range clusters {
		target := plan.Target{Cluster: asTarget(held.Object(obj))}
		goes, name := source.Goes(target), target.Cluster.Name
		if m := c.member(name); m != nil {
			if one, _ := m.copyOf(k); goes || one.Object != nil || one.State != plan.Synced {
				c.countUnmade(k, source, &one)
				one.LoadBalancers = target.Cluster.Spec.LoadBalancerCIDRs
				copies = append(copies, one)
			}
		} else if goes {
			copies = append(copies, plan.Copy{Cluster: name, State: plan.Unreachable, Message: "the cluster is not reachable", Alone: c.alone(k, held.Object(obj), time.Now())})
		}
	}
	return copies
}

// countUnmade counts the pods that a cluster could not make for long enough, or has the object reported again when it will be.
func (c *Controller) countUnmade(k key, source plan.Source, one *plan.Copy) {
	if !k.kind.Failure {
		return
	}
	pods, since := plan.Unmade(one.Object, source.Share(one.Cluster))
	if left := time.Until(since.Add(c.Unmade)); pods > 0 && left > 0 {
		c.reports.AddAfter(k, left)
	} else {
		one.Unmade = pods
	}
}

// events tells people of refusals and foreign objects, once each.
func (c *Controller) events(federated *unstructured.Unstructured, k key, copies []plan.Copy) {
	value, _ := c.reported.Load(k)
	before, _ := value.(map[string]string)
	now := map[string]string{}
	for _, one := range copies {
		if one.State != plan.Rejected && one.State != plan.Conflict {
			continue
		}
		text := fmt.Sprintf("Cluster %s: %s", one.Cluster, one.Message)
		if now[one.Cluster] = text; before[one.Cluster] != text {
			c.Recorder.Event(federated, corev1.EventTypeWarning, "Propagation"+string(one.State), text)
		}
	}
	if len(now) == 0 {
		c.reported.Delete(k)
		return
	}
	c.reported.Store(k, now)
}

// finish takes our finalizers off an object that is being deleted when no member that can be reached
// has a copy of it any more. Members that cannot be reached are cleared when they return.
func (c *Controller) finish(ctx context.Context, k key, federated held.Named) error {
	if !slices.ContainsFunc(federated.GetFinalizers(), ours) {
		return nil
	}
	c.mu.RLock()
	members := make([]*member, 0, len(c.members))
	for _, m := range c.members {
		members = append(members, m)
	}
	c.mu.RUnlock()
	engaged, cleared := map[string]bool{}, true
	for _, m := range members {
		cleared = cleared && time.Since(m.joined) > clearing
		if !m.ready(k.kind) {
			continue // as good as not reachable: no copy can have been made
		}
		engaged[m.Name] = true
		if _, left := m.copyOf(k); left != federated.GetUID() {
			return nil // its queue has the key; its outcome brings us here again
		}
	}
	if err := c.recordEnd(ctx, k, federated, engaged, cleared); err != nil {
		return err
	}
	return c.setFinalizers(ctx, k, federated, slices.DeleteFunc(slices.Clone(federated.GetFinalizers()), ours))
}

// clearing is how long records are kept at least after a member has been taken up: until its stale copies are gone.
const clearing = 10 * time.Minute

// recordEnd records the deletion of an object, where a copy of it may turn up later that nobody could tell from others. cleared:
// the members that are engaged have been for long enough to have no stale copies any more.
func (c *Controller) recordEnd(ctx context.Context, k key, federated held.Named, engaged map[string]bool, cleared bool) error {
	if federated.GetDeletionTimestamp() == nil {
		return nil // it only is to be nowhere
	}
	away := slices.ContainsFunc(c.Informers(v1beta1.ClustersResource).GetStore().List(), func(obj any) bool { return !engaged[held.Object(obj).GetName()] })
	switch {
	case slices.Contains(federated.GetFinalizers(), v1beta1.OrphanMarkFinalizer):
		return c.recordDeletion(ctx, k, federated.GetUID(), plan.Orphaned, away || !cleared)
	case away:
		return c.recordDeletion(ctx, k, federated.GetUID(), plan.Deleted, true)
	}
	return nil
}

func ours(finalizer string) bool {
	return finalizer == v1beta1.DeleteFromClustersFinalizer || finalizer == v1beta1.OrphanMarkFinalizer
}

func hasFinalizers(u held.Named) bool {
	return slices.Contains(u.GetFinalizers(), v1beta1.DeleteFromClustersFinalizer)
}

func (c *Controller) setFinalizers(ctx context.Context, k key, federated held.Named, finalizers []string) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"finalizers": finalizers, "resourceVersion": federated.GetResourceVersion(), "uid": federated.GetUID(),
	}})
	if err != nil {
		return err
	}
	return c.patch(ctx, k, types.MergePatchType, body)
}

// patch patches the federated object and notes the version that came of it.
func (c *Controller) patch(ctx context.Context, k key, kind types.PatchType, body []byte, subresources ...string) error {
	got, err := resource(c.Client, k).Patch(ctx, k.Name, kind, body, metav1.PatchOptions{FieldManager: FieldManager}, subresources...)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	after := resourceversion.Of(got)
	if got.GetDeletionTimestamp() != nil && len(got.GetFinalizers()) == 0 {
		after++ // it went with that, and the answer is what it was before
	}
	c.patched.Store(k, resourceversion.LeftAt(after))
	if c.held(k) == nil {
		c.patched.Delete(k) // that was the last of it, and the cache knows
	}
	return nil
}
