package mcs

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/held"
	"federation/controllers/mcs/plan"
	"federation/controllers/supervisor"
)

// Resources that are read and written.
var (
	group          = schema.GroupVersion{Group: mcsv1beta1.GroupName, Version: mcsv1beta1.GroupVersion.Version}
	serviceExports = group.WithResource(mcsv1beta1.ServiceExportPluralName)
	serviceImports = group.WithResource(mcsv1beta1.ServiceImportPluralName)
	services       = corev1.SchemeGroupVersion.WithResource("services")
	namespaces     = corev1.SchemeGroupVersion.WithResource("namespaces")
	endpointSlices = discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
)

// Informers give informers, one for a resource.
type Informers func(schema.GroupVersionResource) cache.SharedIndexInformer

// Options are what a Controller needs. All are required but the last four.
type Options struct {
	// Client writes to the federation.
	Client dynamic.Interface
	// Informers are the federation's, shared with others and started by them.
	Informers Informers
	// Federation is the UID of the federation.
	Federation string
	// Recorder takes events about Clusters.
	Recorder record.EventRecorder
	// Held returns the clusters that are lost, but count as serving, because most vanished at once. Default: none.
	Held func([]*v1beta1.Cluster) map[string]bool
	// Workers is the number of parallel writes to each member; default 8.
	Workers int
	// WriteTimeout bounds what is done for one Service; default 10 s.
	WriteTimeout time.Duration
	// Owns reports whether this controller handles a Service; it ignores the others. Default: all.
	Owns func(namespace, name string) bool
}

// Controller imports into each member what others export. Make it with New.
type Controller struct {
	Options
	exports, imports, clusters, namespaces cache.SharedIndexInformer // at the federation
	queue                                  *queue                    // of the federation's own ServiceImports

	mu sync.Mutex
	// known are all Clusters, by name; offers what plan needs of them.
	known  map[string]*v1beta1.Cluster
	offers map[string]plan.Source
	// seen has what is known of each member: engaged now, or when it was last.
	seen    map[string]*member
	engaged map[*member]bool
	work    *supervisor.Group
}

// New returns a Controller. It must be called before the informers start.
func New(o Options) (*Controller, error) {
	if o.Workers == 0 {
		o.Workers = 8
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = 10 * time.Second
	}
	if o.Owns == nil {
		o.Owns = func(string, string) bool { return true }
	}
	if o.Held == nil {
		o.Held = func([]*v1beta1.Cluster) map[string]bool { return nil }
	}
	registerMetrics()
	c := &Controller{
		Options: o, exports: o.Informers(serviceExports), imports: o.Informers(serviceImports), clusters: o.Informers(v1beta1.ClustersResource), namespaces: o.Informers(namespaces),
		queue: newQueue(), known: map[string]*v1beta1.Cluster{}, offers: map[string]plan.Source{}, seen: map[string]*member{}, engaged: map[*member]bool{}, work: supervisor.NewGroup(),
	}
	changed := func(obj any) { c.changed(keyOf(obj)) }
	own := func(obj any) { c.add(c.queue, keyOf(obj)) }
	_, err := c.exports.AddEventHandler(handler(changed))
	_, err2 := c.imports.AddEventHandler(handler(own))
	_, err3 := c.clusters.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.setCluster, UpdateFunc: func(_, is any) { c.setCluster(is) }, DeleteFunc: func(obj any) { c.dropCluster(held.About(obj).GetName()) },
	})
	_, err4 := c.namespaces.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		for _, key := range c.exportedIn(held.About(obj).GetName()) {
			c.add(c.queue, key)
		}
	}})
	return c, errors.Join(err, err2, err3, err4)
}

// handler has a function called for each object that is added, changed or deleted.
func handler(do func(obj any)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{AddFunc: do, UpdateFunc: func(_, is any) { do(is) }, DeleteFunc: do}
}

func keyOf(obj any) string {
	o := held.About(obj)
	return o.GetNamespace() + "/" + o.GetName()
}

// Run works until ctx is done. When it returns, no write is in flight.
func (c *Controller) Run(ctx context.Context) error {
	if cache.WaitForCacheSync(ctx.Done(), c.exports.HasSynced, c.imports.HasSynced, c.clusters.HasSynced, c.namespaces.HasSynced) {
		supervisor.ProcessQueue(ctx, "mcs", c.queue, c.summarize)
	}
	<-ctx.Done()
	c.work.End()
	return nil
}

// synced reports whether the federation's caches are.
func (c *Controller) synced() bool {
	return c.exports.HasSynced() && c.imports.HasSynced() && c.clusters.HasSynced()
}

func (c *Controller) owns(key string) bool {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	return err == nil && c.Owns(namespace, name)
}

func (c *Controller) add(q *queue, key string) {
	if c.owns(key) {
		q.addInPace(key)
	}
}

// changed enqueues a Service for all members and the federation.
func (c *Controller) changed(key string) { c.forAll(key, (*queue).addInPace) }

// forAll adds a Service to the queues of all members and of the federation.
func (c *Controller) forAll(key string, add func(*queue, string)) {
	if !c.owns(key) {
		return
	}
	add(c.queue, key)
	c.mu.Lock()
	defer c.mu.Unlock()
	for m := range c.engaged {
		add(m.queue, key)
	}
}

// setCluster takes in a Cluster. What members import is looked at again when one is lost, drained or elsewhere than before.
func (c *Controller) setCluster(obj any) {
	cluster := &v1beta1.Cluster{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(held.Object(obj).Object, cluster) != nil {
		return // the API server lets none in that cannot be read
	}
	c.mu.Lock()
	c.known[cluster.Name] = cluster
	c.mu.Unlock()
	c.rank()
}

func (c *Controller) dropCluster(name string) {
	c.mu.Lock()
	delete(c.known, name)
	delete(c.seen, name)
	c.mu.Unlock()
	c.rank()
}

// rank works out again what plan needs of all Clusters.
func (c *Controller) rank() {
	c.mu.Lock()
	suspended := c.Held(slices.Collect(maps.Values(c.known)))
	offers := map[string]plan.Source{}
	for name, cluster := range c.known {
		o := plan.Source{Cluster: name, Network: cluster.Spec.Network, PodCIDRs: cluster.Spec.PodCIDRs, LoadBalancerCIDRs: cluster.Spec.LoadBalancerCIDRs, Properties: propertiesOf(cluster)}
		switch {
		case !cluster.IsReady() && !suspended[name]:
			o.Rank = plan.Lost
		case cluster.DNSWeight() == 0:
			o.Rank = plan.Drained
		}
		offers[name] = o
	}
	same := maps.EqualFunc(offers, c.offers, func(a, b plan.Source) bool {
		return a.Rank == b.Rank && a.Network == b.Network && slices.Equal(a.PodCIDRs, b.PodCIDRs) && slices.Equal(a.LoadBalancerCIDRs, b.LoadBalancerCIDRs) && maps.Equal(a.Properties, b.Properties)
	})
	c.offers = offers
	c.mu.Unlock()
	if !same {
		c.again()
	}
}

// propertiesOf returns what selectors of clusters (KEP-5939) select a Cluster by: what it is called, as members say it in their ClusterProperties, where it is,
// and its labels, which are its administrators'.
func propertiesOf(cluster *v1beta1.Cluster) map[string]string {
	all := map[string]string{}
	maps.Copy(all, cluster.Labels)
	if region := cluster.Status.Region; region != "" {
		all["region.topology.k8s.io"] = region
	}
	if zones := cluster.Status.Zones; len(zones) == 1 {
		all["zone.topology.k8s.io"] = zones[0]
	}
	all["cluster.clusterset.k8s.io"] = cluster.Name
	return all
}

// again enqueues all that is exported or imported anywhere, soon: a cluster may be lost.
func (c *Controller) again() {
	keys := map[string]bool{}
	for _, key := range c.imports.GetStore().ListKeys() {
		keys[key] = true
	}
	c.mu.Lock()
	for _, m := range c.seen {
		for _, informer := range []cache.SharedIndexInformer{m.exports, m.imports} {
			for _, key := range informer.GetStore().ListKeys() {
				keys[key] = true
			}
		}
	}
	c.mu.Unlock()
	for key := range keys {
		c.forAll(key, (*queue).addSoon)
	}
}

// exportedIn returns the keys of the Services that are exported in a namespace.
func (c *Controller) exportedIn(namespace string) (keys []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.seen {
		of, _ := m.exports.GetIndexer().IndexKeys(cache.NamespaceIndex, namespace) // the index is there
		keys = append(keys, of...)
	}
	return keys
}

// sources returns the clusters, each with what is known of its export.
func (c *Controller) sources(key string) (all []plan.Source) {
	namespace, _, _ := cache.SplitMetaNamespaceKey(key) // which we made
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(c.offers)) {
		s := c.offers[name]
		if m := c.seen[name]; m != nil {
			s.Export, s.Known = m.export(key)
			s.Absent = m.ctx == nil
		}
		if s.Export != nil {
			s.Export.Refused = refused(c.known[name], namespace)
		}
		all = append(all, s)
	}
	return all
}

// refused returns why a cluster may neither export nor import in a namespace; "" if it may.
func refused(cluster *v1beta1.Cluster, namespace string) string {
	switch {
	case v1beta1.OwnNamespace(namespace):
		return "each cluster keeps the namespace " + namespace + " for itself"
	case cluster != nil:
		return cluster.RefusesNamespace(namespace)
	}
	return ""
}

// object returns the object of a key, or nil.
func object(i cache.SharedIndexInformer, key string) *unstructured.Unstructured {
	obj, there, err := i.GetStore().GetByKey(key)
	if err != nil || !there {
		return nil
	}
	return held.Object(obj)
}

// read makes an object of what an informer holds; nil where it holds none, or one that cannot be read.
func read[T any](u *unstructured.Unstructured) *T {
	if u == nil {
		return nil
	}
	into := new(T)
	if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into) != nil {
		return nil
	}
	return into
}
