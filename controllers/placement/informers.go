package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/held"
	"federation/scheduler"
)

// kinds are the placed kinds: the built-in ones, and custom ones that policies name.
type kinds struct {
	sync.Mutex
	known  map[schema.GroupVersionResource]schema.GroupVersionKind
	failed map[schema.GroupVersionKind]error // why a custom kind cannot be served; nil while unknown
	// uncounted has the custom kinds that were asked for and whose objects have not all been decided once: how many a policy governs is unknown.
	uncounted map[schema.GroupVersionKind]bool
}

// setCounted records whether all objects of a kind have been decided once.
func (k *kinds) setCounted(kind schema.GroupVersionKind, counted bool) {
	k.Lock()
	defer k.Unlock()
	if counted {
		delete(k.uncounted, kind)
	} else {
		k.uncounted[kind] = true
	}
}

// areCounted reports whether all objects that a policy may govern have been decided once.
func (k *kinds) areCounted(p *v1beta1.PlacementPolicy) bool {
	k.Lock()
	defer k.Unlock()
	return !slices.ContainsFunc(p.Spec.ResourceSelectors, func(r v1beta1.ResourceSelector) bool {
		return k.uncounted[schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)]
	})
}

func (k *kinds) all() map[schema.GroupVersionResource]schema.GroupVersionKind {
	k.Lock()
	defer k.Unlock()
	return maps.Clone(k.known)
}

// failureOf returns why a kind is not placed, or nil; asked reports whether it has been requested.
func (k *kinds) failureOf(kind schema.GroupVersionKind) (err error, asked bool) {
	k.Lock()
	defer k.Unlock()
	for _, known := range k.known {
		if known == kind {
			return nil, true
		}
	}
	err, asked = k.failed[kind]
	return err, asked
}

// resourceOf returns the resource of a placed kind.
func (k *kinds) resourceOf(kind schema.GroupVersionKind) schema.GroupVersionResource {
	k.Lock()
	defer k.Unlock()
	for resource, known := range k.known {
		if known == kind {
			return resource
		}
	}
	return schema.GroupVersionResource{}
}

// servedError returns why the objects of a kind are not placed, or nil. The definition of a custom kind may be gone: resolve, if there is one, knows.
func (k *kinds) servedError(kind schema.GroupVersionKind, resolve resolver) error {
	err, _ := k.failureOf(kind)
	if err == nil && resolve != nil && v1beta1.FederatedKindOf(k.resourceOf(kind).GroupResource()) == nil {
		_, _, err = resolve(kind.GroupVersion().String(), kind.Kind)
	}
	return err
}

// subscribe subscribes to the objects of a kind.
func (c *Controller) subscribe(resource schema.GroupVersionResource, kind schema.GroupVersionKind) error {
	c.kinds.Lock()
	c.kinds.known[resource] = kind
	delete(c.kinds.failed, kind)
	c.kinds.Unlock()
	wake := func(obj any) {
		o := held.About(obj)
		c.decide.Add(key{resource, types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}})
	}
	_, err := held.By(c.Informers(resource)).AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: wake,
		UpdateFunc: func(was, is any) {
			if held.OnlyStatusDiffers(was, is) {
				return
			}
			before, after := held.Object(was), held.Object(is)
			k := key{resource, types.NamespacedName{Namespace: after.GetNamespace(), Name: after.GetName()}}
			if comparableSpec(before) != comparableSpec(after) || placementOf(before) != placementOf(after) && !c.intents.isCached(k, after) {
				c.decide.Add(k)
			}
		},
		DeleteFunc: wake,
	})
	return err
}

// comparableSpec returns what placement reads of a federated object, except its placement, as a comparable string.
func comparableSpec(u *unstructured.Unstructured) string {
	spec, _ := u.Object["spec"].(map[string]any)
	a := u.GetAnnotations()
	var refers []v1beta1.Reference
	if u.GetGeneration() == 0 { // no generation, as in a ServiceAccount
		refers = v1beta1.References(u.GroupVersionKind().GroupKind(), u.Object)
	}
	return fmt.Sprint(refers, u.GetUID(), u.GetGeneration(), u.GetDeletionTimestamp() != nil, spec["replicas"], spec["parallelism"], u.GetLabels(),
		a[scheduler.Preferences(u.GroupVersionKind().GroupKind())], "\x00", a[v1beta1.ClusterSelectorAnnotation], "\x00", a[v1beta1.CreatedPodsAnnotation])
}

func placementOf(u *unstructured.Unstructured) string {
	return u.GetAnnotations()[v1beta1.PlacementAnnotation]
}

// watchClusters enqueues all objects when the usability of a cluster changes, and those that are short of room when its
// room does.
func (c *Controller) watchClusters() error {
	changed := func(obj any) {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return
		}
		cluster := readCluster(u)
		if c.events.recordChange(u.GetName(), forbids, strings.Join(cluster.Status.InaccessibleResources, ",")) {
			c.policies.enqueueAll()
		}
		if c.events.recordChange(u.GetName(), topology, fmt.Sprint(cluster.Labels, cluster.Status.Zones, cluster.Status.Region)) {
			c.policies.enqueueAll()
		}
		if c.events.recordChange(u.GetName(), use, scheduler.Usability(cluster)) {
			c.policies.enqueueTogether()
			c.decide.AddAfter(key{resource: everything}, gather)
		} else {
			c.decide.AddAfter(key{resource: short}, roomPause)
		}
	}
	_, err := c.Informers(v1beta1.ClustersResource).AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(_, is any) { changed(is) },
		DeleteFunc: func(obj any) {
			if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
				c.events.forget(name)
				c.policies.enqueueAll()
			}
			c.decide.AddAfter(key{resource: everything}, gather)
		},
	})
	return err
}

// clusterAspects remembers the last seen state of clusters.
type clusterAspects struct {
	sync.Mutex
	seen map[string]map[aspect]string
}

// aspect is a part of that state: what a cluster can be used for, which kinds it forbids, or what policies select it
// by.
type aspect int

const (
	use aspect = iota
	forbids
	topology
)

// recordChange records an aspect of a cluster, and reports whether it changed.
func (e *clusterAspects) recordChange(cluster string, of aspect, is string) bool {
	e.Lock()
	defer e.Unlock()
	if e.seen == nil {
		e.seen = map[string]map[aspect]string{}
	}
	if e.seen[cluster] == nil {
		e.seen[cluster] = map[aspect]string{}
	}
	was, known := e.seen[cluster][of]
	e.seen[cluster][of] = is
	return !known || was != is
}

func (e *clusterAspects) forget(cluster string) {
	e.Lock()
	defer e.Unlock()
	delete(e.seen, cluster)
}

// watchPolicies enqueues the objects of a namespace when its policies change.
func (c *Controller) watchPolicies() error {
	changed := func(obj any) {
		name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
		if err != nil {
			return
		}
		namespace, policy, _ := cache.SplitMetaNamespaceKey(name)
		c.decide.AddAfter(key{everything, types.NamespacedName{Namespace: namespace}}, gather)
		c.policies.queue.AddAfter(types.NamespacedName{Namespace: namespace, Name: policy}, gather)
		if u, ok := obj.(*unstructured.Unstructured); ok {
			c.wantKinds(readPolicy(u))
		}
	}
	_, err := c.Informers(v1beta1.PoliciesResource).AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: changed,
		UpdateFunc: func(was, is any) {
			before, after := was.(*unstructured.Unstructured), is.(*unstructured.Unstructured)
			if before.GetGeneration() != after.GetGeneration() || before.GetUID() != after.GetUID() || after.GetGeneration() == 0 {
				changed(is)
			}
		},
		DeleteFunc: changed,
	})
	return err
}
