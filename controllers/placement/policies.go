package placement

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/scheduler"
)

// statusPause is the delay that batches changes into one write of a policy's status.
const statusPause = time.Second

// tally counts the objects that policies govern.
type tally struct {
	sync.Mutex
	governs map[key]types.NamespacedName
	objects map[types.NamespacedName]int32
}

// record records which policy governs an object, "" for none, and returns the policies that govern another number of objects now.
func (t *tally) record(k key, policy string) (changed []types.NamespacedName) {
	t.Lock()
	defer t.Unlock()
	was, is := t.governs[k], types.NamespacedName{}
	if policy != "" {
		is = types.NamespacedName{Namespace: k.Namespace, Name: policy}
	}
	if was == is {
		return nil
	}
	if t.objects == nil {
		t.objects = map[types.NamespacedName]int32{}
	}
	delete(t.governs, k)
	if was.Name != "" {
		if t.objects[was]--; t.objects[was] == 0 {
			delete(t.objects, was)
		}
		changed = append(changed, was)
	}
	if is.Name != "" {
		t.governs[k] = is
		t.objects[is]++
		changed = append(changed, is)
	}
	return changed
}

func (t *tally) count(policy types.NamespacedName) int32 {
	t.Lock()
	defer t.Unlock()
	return t.objects[policy]
}

// policyReporter writes the status of policies.
type policyReporter struct {
	*Options
	queue workqueue.TypedRateLimitingInterface[types.NamespacedName]
	kinds *kinds
	tally tally
}

// recordGoverning records which policy governs an object; "" for none.
func (r *policyReporter) recordGoverning(k key, policy string) {
	for _, name := range r.tally.record(k, policy) {
		r.queue.AddAfter(name, statusPause)
	}
}

// recordTogether enqueues a policy whose status does not say yet where all that it governs is.
func (r *policyReporter) recordTogether(w *scheduler.World, i *item, d *scheduler.Decision) {
	if d.Together == nil {
		return
	}
	if p := w.Policy(&i.Object); p != nil && !slices.Equal(p.Status.Clusters, d.Together) {
		r.queue.AddAfter(types.NamespacedName{Namespace: p.Namespace, Name: p.Name}, gather)
	}
}

// together returns where a policy keeps all that it governs, as the deciding goroutine sees it, and has it reported again when that
// may change by time alone. ok is false if it does not keep it together.
func (r *policyReporter) together(p *v1beta1.PlacementPolicy) (clusters, home []string, ok bool) {
	if p.Spec.WorkloadAffinity != v1beta1.WorkloadAffinityRequired {
		return nil, nil, false
	}
	w := scheduler.NewWorld(joinedClusters(r.Informers(v1beta1.ClustersResource).GetStore()), []*v1beta1.PlacementPolicy{p})
	w.Grace = r.GracePeriod
	clusters, home, holds, ok := w.Together(p, time.Now())
	if holds > 0 {
		r.queue.AddAfter(types.NamespacedName{Namespace: p.Namespace, Name: p.Name}, holds)
	}
	return clusters, home, ok
}

// enqueueNaming enqueues the policies that name a kind whose state changed.
func (r *policyReporter) enqueueNaming(kind schema.GroupKind) {
	for _, obj := range r.Informers(v1beta1.PoliciesResource).GetStore().List() {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		for _, s := range readPolicy(u).Spec.ResourceSelectors {
			if schema.FromAPIVersionAndKind(s.APIVersion, s.Kind).GroupKind() == kind {
				r.queue.AddAfter(types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}, statusPause)
			}
		}
	}
}

// enqueueAll enqueues all policies: clusters have come or gone, or forbid other kinds.
func (r *policyReporter) enqueueAll() {
	for _, name := range namesIn(r.Informers(v1beta1.PoliciesResource).GetIndexer(), "") {
		r.queue.AddAfter(name, statusPause)
	}
}

// enqueueTogether enqueues the policies that keep all that they govern together, whether they govern anything or not: what a cluster can
// be used for has changed.
func (r *policyReporter) enqueueTogether() {
	for _, obj := range r.Informers(v1beta1.PoliciesResource).GetStore().List() {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		if affinity, _, _ := unstructured.NestedString(u.Object, "spec", "workloadAffinity"); affinity == string(v1beta1.WorkloadAffinityRequired) {
			r.queue.AddAfter(types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}, gather)
		}
	}
}

// report writes the status of a policy if it changed: how many objects it governs, and whether all its kinds can
// be spread.
func (r *policyReporter) report(ctx context.Context, name types.NamespacedName) error {
	obj, ok, err := r.Informers(v1beta1.PoliciesResource).GetStore().GetByKey(name.String())
	u, _ := obj.(*unstructured.Unstructured)
	if err != nil || !ok || u == nil {
		return err
	}
	p := readPolicy(u)
	status := p.Status.DeepCopy()
	status.ObservedGeneration = p.Generation
	if r.kinds.areCounted(p) {
		status.Objects = r.tally.count(name)
	}
	if clusters, home, ok := r.together(p); !ok || len(clusters) > 0 {
		status.Clusters, status.Home = clusters, home // if none can be used, all stays
	}
	changed := meta.SetStatusCondition(&status.Conditions, scheduler.AcceptedCondition(p, r.kindsOf(p), joinedClusters(r.Informers(v1beta1.ClustersResource).GetStore())))
	if !changed && status.ObservedGeneration == p.Status.ObservedGeneration && status.Objects == p.Status.Objects &&
		slices.Equal(status.Clusters, p.Status.Clusters) && slices.Equal(status.Home, p.Status.Home) {
		return nil
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.UID}, "status": map[string]any{
		"observedGeneration": status.ObservedGeneration, "objects": status.Objects, "conditions": status.Conditions, // 0 is written, too
		"clusters": status.Clusters, "home": status.Home,
	}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	_, err = r.Client.Resource(v1beta1.PoliciesResource).Namespace(p.Namespace).Patch(ctx, p.Name, types.MergePatchType, body,
		metav1.PatchOptions{FieldManager: "federation-placement"}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot write the status of a policy; will retry", "policy", name)
	}
	return err
}

// kindsOf returns what is known of the kinds that a policy names.
func (r *policyReporter) kindsOf(p *v1beta1.PlacementPolicy) (kinds []scheduler.PolicyKind) {
	for _, s := range p.Spec.ResourceSelectors {
		kind := schema.FromAPIVersionAndKind(s.APIVersion, s.Kind)
		kinds = append(kinds, scheduler.PolicyKind{Resource: r.kinds.resourceOf(kind).GroupResource(), Err: r.kinds.servedError(kind, r.Resolve)})
	}
	return kinds
}

// joinedClusters returns the joined clusters, ready or not.
func joinedClusters(store cache.Store) (all []*v1beta1.Cluster) {
	for _, obj := range store.List() {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			all = append(all, readCluster(u))
		}
	}
	return all
}
