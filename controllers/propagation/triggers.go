package propagation

import (
	"context"
	"reflect"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/held"
	"federation/controllers/propagation/plan"
)

var (
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	secrets     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	services    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	autoscalers = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}
)

// Indexes of informers.
const (
	byTarget  = "scale target"
	byService = "service"
)

// triggers turn what happens into keys: in which members an object is synced, and whether its status is reported.
//
//	what happens                                    is synced                          is reported
//	a federated object comes, goes, asks for more   it, in all members                 it
//	only its status changes                         -                                  it
//	an object of another process                    it, in all members, in a while     -
//	a workload changes                              its autoscalers, in all members    they
//	a policy changes                                what it governs, in all members    that
//	an autoscaler comes, goes, takes another target its target, in all members         that
//	a Cluster's labels, zones, region, CIDRs        all, in it                         all
//	a Cluster's nodes are heard of again            what waits for other members       -
//	a Cluster could be engaged, and is not          -                                  what has addresses, in a while
//	a member is engaged                             all, in it, and what waits         all
//	a member is lost                                what waits                         all
//	a copy changes                                  it, in its member, and where       it
//	                                                the object waits for others
//	a copy's own status changes                     where the object waits             it
//	a copy of an autoscaler comes, goes             its target, in its member, and     -
//	                                                where that waits
//	a copy of a namespace comes, or is refused      what goes into it, in its member   -
//	an EndpointSlice changes                        -                                  its Service
type triggers struct {
	*view
	*members
	*reporter
	blockedCopies
	handlers
}

// subscribe makes events at the federation trigger what follows.
func (t *triggers) subscribe(k *plan.Kind) error {
	wake := func(obj any) {
		this := keyOf(k, held.About(obj))
		t.autoscalersChanged(this)
		switch {
		case t.owns(this):
			t.enqueueEverywhere(this)
		case OfAllShards(k.Resource):
			for _, m := range t.all() { // its fate there is read after a while
				m.queue.AddAfter(this, othersTime)
			}
		}
	}
	return t.listen(held.By(t.Informers(k.Resource)), cache.ResourceEventHandlerFuncs{
		AddFunc:    wake,
		DeleteFunc: wake,
		UpdateFunc: func(was, is any) {
			if this := keyOf(k, held.About(is)); !sameSource(was, is) {
				wake(is)
			} else if t.owns(this) && !t.isOurPatch(this, held.About(is)) {
				t.enqueueReport(this)
			}
		},
	})
}

// enqueueEverywhere enqueues an object in all members, and its report.
func (t *triggers) enqueueEverywhere(k key) {
	for _, m := range t.all() {
		m.queue.Add(k)
	}
	t.reportOrFinish(k)
}

// watchClusters enqueues all that goes to a cluster when what selects it changes.
func (t *triggers) watchClusters() error {
	return t.listen(t.Informers(v1beta1.ClustersResource), cache.ResourceEventHandlerFuncs{
		AddFunc:    func(is any) { t.syncAllIn(held.Object(is).GetName()); t.reportAll() },
		UpdateFunc: t.clusterChanged,
		DeleteFunc: func(any) { t.reportAll() },
	})
}

func (t *triggers) clusterChanged(was, is any) {
	before, after := held.Object(was), held.Object(is)
	if !reflect.DeepEqual(asTarget(before), asTarget(after)) {
		t.syncAllIn(after.GetName())
		t.reportAll()
	}
	if before.GetAnnotations()[v1beta1.ApproveDeletionsAnnotation] != after.GetAnnotations()[v1beta1.ApproveDeletionsAnnotation] {
		if m := t.member(after.GetName()); m != nil {
			m.brake.wake.Signal()
		}
	}
	if !plan.IsReached(before) && plan.IsReached(after) && t.couldBeEngaged(after.GetName()) {
		t.reportAddressesLater()
	}
	if plan.IsReady(before) && !plan.IsReady(after) && t.member(after.GetName()) == nil && time.Since(t.started) < initialSync {
		t.reportAll() // no report waits for it any more
	}
	if plan.IsSilent(before) && !plan.IsSilent(after) {
		t.wakeAllWaiting() // the status of its copies counts from now on
	}
}

// syncAllIn enqueues everything in a cluster, if it is engaged.
func (t *triggers) syncAllIn(cluster string) {
	if m := t.member(cluster); m != nil {
		for _, k := range t.objects() {
			m.queue.Add(k)
		}
	}
}

// reportAddressesLater enqueues a report of everything with addresses for when a cluster should have been engaged.
func (t *triggers) reportAddressesLater() {
	for i := range t.Kinds {
		if k := &t.Kinds[i]; k.Addresses {
			for _, this := range t.objectsOf(k) {
				t.reports.AddAfter(this, aloneAfter)
			}
		}
	}
}

// watchPolicies caches the policies, and enqueues the objects that a changed one governs.
func (t *triggers) watchPolicies() (err error) {
	keep := func(obj any) {
		u := held.Object(obj)
		name, p := types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}, &v1beta1.PlacementPolicy{}
		if before := t.policy(name); before != nil && before.UID == u.GetUID() && before.Generation == u.GetGeneration() && u.GetGeneration() > 0 {
			return // only its status changed
		}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p) != nil {
			return // the API stores no invalid ones
		}
		t.typed.Store(name, p)
		t.policyChanged(name)
	}
	t.listed, err = t.register(t.Informers(v1beta1.PoliciesResource), cache.ResourceEventHandlerFuncs{
		AddFunc:    keep,
		UpdateFunc: func(_, is any) { keep(is) },
		DeleteFunc: func(obj any) {
			u := held.Object(obj)
			t.typed.Delete(types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()})
		},
	})
	return err
}

func (t *triggers) policyChanged(policy types.NamespacedName) {
	for i := range t.Kinds {
		k := &t.Kinds[i]
		for _, obj := range t.inNamespace(k, policy.Namespace) {
			u := held.Object(obj)
			if p := plan.Read(u); p != nil && p.Policy == policy.Name && t.owns(keyOf(k, u)) {
				t.enqueueEverywhere(keyOf(k, u))
			}
		}
	}
}

// watchAutoscalers enqueues the target of an autoscaler at the federation when the autoscaler changes.
func (t *triggers) watchAutoscalers() error {
	if t.kindOf(autoscalers) == nil {
		return nil
	}
	informer := t.Informers(autoscalers)
	if err := indexByTarget(informer); err != nil {
		return err
	}
	wake := func(obj any) {
		if k, ok := t.targetOf(held.Object(obj)); ok && t.owns(k) {
			t.enqueueEverywhere(k)
		}
	}
	return t.listen(informer, cache.ResourceEventHandlerFuncs{AddFunc: wake, DeleteFunc: wake, UpdateFunc: func(was, is any) {
		switch {
		case scaleTarget(held.Object(was)) != scaleTarget(held.Object(is)):
			wake(was)
			wake(is)
		case !sameSource(was, is): // it may go elsewhere
			wake(is)
		}
	}})
}

// autoscalersChanged enqueues the autoscalers of a workload whose replicas may be about to leave a cluster.
func (t *triggers) autoscalersChanged(k key) {
	if !k.Kind.Paced {
		return
	}
	for _, a := range t.autoscalersOf(k) {
		if of := keyOf(a.Kind, a.Object); t.owns(of) {
			t.enqueueEverywhere(of)
		}
	}
}

// watchCopies enqueues a changed copy in its member, the copies that wait for it, and always the report.
func (t *triggers) watchCopies(m *member, k *plan.Kind) error {
	changed := func(obj any) (key, bool) {
		this := keyOf(k, held.About(obj))
		if !t.owns(this) {
			return this, false
		}
		t.enqueueReport(this)
		t.wakeWaiting(this)
		return this, true
	}
	return m.listen(held.By(m.Informers(k.Resource)), cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if initial {
				return // serve handles all of these
			}
			if this, ours := changed(obj); ours && m.IsNews(this, held.About(obj)) {
				m.queue.Add(this) // it may have come late: by a request in flight when the member was lost
			}
			if k.Resource == namespaces {
				t.namespaceCame(m, held.About(obj).GetName())
			}
		},
		UpdateFunc: func(was, is any) {
			if this, ours := changed(is); ours && !sameSource(was, is) && m.IsNews(this, held.About(is)) {
				m.queue.Add(this)
			}
		},
		DeleteFunc: func(obj any) {
			m.Gone(keyOf(k, held.About(obj)), held.About(obj).GetUID())
			if this, ours := changed(obj); ours {
				m.queue.Add(this)
				t.reportOrFinish(this)
			}
		},
	})
}

// namespaceCame enqueues everything that waits for a namespace which a member now has or rejects.
func (t *triggers) namespaceCame(m *member, name string) {
	for i := range t.Kinds {
		for _, obj := range t.inNamespace(&t.Kinds[i], name) {
			if k := keyOf(&t.Kinds[i], held.About(obj)); t.owns(k) {
				m.queue.Add(k)
			}
		}
	}
}

// watchScaling enqueues the target of an autoscaler when its copy in a member is added, deleted or takes another
// target.
func (t *triggers) watchScaling(m *member) error {
	if t.kindOf(autoscalers) == nil {
		return nil
	}
	informer := m.Informers(autoscalers)
	if err := indexByTarget(informer); err != nil {
		return err
	}
	wake := func(obj any) { t.autoscalerCame(m, held.Object(obj)) }
	return m.listen(held.By(informer), cache.ResourceEventHandlerFuncs{AddFunc: wake, DeleteFunc: wake, UpdateFunc: func(was, is any) {
		if !sameSource(was, is) {
			wake(was)
			wake(is)
		}
	}})
}

// autoscalerCame enqueues what an autoscaler scales in a member when the autoscaler was added, deleted or rejected
// there.
func (t *triggers) autoscalerCame(m *member, autoscaler *unstructured.Unstructured) {
	if k, ok := t.targetOf(autoscaler); ok && t.owns(k) {
		m.queue.Add(k)
		t.wakeWaiting(k)
	}
}

// dependentsOf enqueues those objects in a member that depend on one whose state there became known.
func (t *triggers) dependentsOf(k key, m *member, federated *unstructured.Unstructured) {
	switch {
	case k.Kind.Resource == namespaces && !m.MayCome(k):
		t.namespaceCame(m, k.Name)
	case k.Kind.Resource == autoscalers:
		t.autoscalerCame(m, federated)
	}
}

// watchEndpoints reports a Service again when the readiness of its endpoints may have changed.
func (t *triggers) watchEndpoints(m *member) error {
	kind := t.kindOf(services)
	if kind == nil {
		return nil
	}
	informer := m.Informers(plan.EndpointSlices)
	if err := addIndex(informer, byService, func(obj any) ([]string, error) { return []string{serviceOf(held.Object(obj)).String()}, nil }); err != nil {
		return err
	}
	wake := func(obj any) {
		if k := (key{Kind: kind, NamespacedName: serviceOf(held.Object(obj))}); k.Name != "" && t.owns(k) { // those of other clusters have none
			t.reports.Add(k)
			t.wakeWaiting(k) // a copy elsewhere may stay until this one serves
		}
	}
	return m.listen(informer, cache.ResourceEventHandlerFuncs{AddFunc: wake, UpdateFunc: func(_, is any) { wake(is) }, DeleteFunc: wake})
}

// wakeWaiting enqueues an object in those members where it waits for others.
func (t *triggers) wakeWaiting(k key) {
	for _, cluster := range t.waitingFor(k) {
		if m := t.member(cluster); m != nil {
			m.queue.Add(k)
		}
	}
}

// wakeOthers enqueues an object where it waits for others, except in one member and in those that refuse it: these have retries
// of their own, and would wake each other without end.
func (t *triggers) wakeOthers(k key, but *member) {
	for _, cluster := range t.waitingFor(k) {
		m := t.member(cluster)
		if m == nil || m == but {
			continue
		}
		if _, last := m.Read(k); last.State != plan.Rejected && last.State != plan.Conflict {
			m.queue.Add(k)
		}
	}
}

// wakeAllWaiting enqueues everything that waits: a member came or went.
func (t *triggers) wakeAllWaiting() {
	for _, k := range t.thatWait() {
		t.wakeWaiting(k)
	}
}

// wakeWhenHeardOf enqueues what waits for pods of a member once its nodes' heartbeats are current. Only a member that
// has just returned is silent.
func (t *triggers) wakeWhenHeardOf(ctx context.Context, m *member) {
	if !m.heartbeatsStale() {
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for m.heartbeatsStale() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	t.wakeAllWaiting() // its Cluster may never have reported it as silent
}

func serviceOf(slice *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: slice.GetNamespace(), Name: slice.GetLabels()[discoveryv1.LabelServiceName]}
}

func scaleTargetRef(autoscaler *unstructured.Unstructured) (kind, name string) {
	kind, _, _ = unstructured.NestedString(autoscaler.Object, "spec", "scaleTargetRef", "kind")
	name, _, _ = unstructured.NestedString(autoscaler.Object, "spec", "scaleTargetRef", "name")
	return kind, name
}

// scaleTarget returns the index value of what an autoscaler scales.
func scaleTarget(autoscaler *unstructured.Unstructured) string {
	kind, name := scaleTargetRef(autoscaler)
	return kind + "/" + autoscaler.GetNamespace() + "/" + name
}

func indexByTarget(autoscalers cache.SharedIndexInformer) error {
	return addIndex(autoscalers, byTarget, func(obj any) ([]string, error) { return []string{scaleTarget(held.Object(obj))}, nil })
}
