package mcs

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/held"
	"federation/controllers/mcs/plan"
	"federation/controllers/supervisor"
)

// Member is a live connection to a member cluster.
type Member struct {
	Name   string
	Client dynamic.Interface
	// Ours returns informers of what this federation made in the member, as far as selector, unless it is "", selects it.
	// They run from start until ctx is done.
	Ours func(ctx context.Context, selector string) (of Informers, start func())
	// All is the same for what anybody made, in a namespace, or in all if that is "". Of Namespaces they have only the metadata.
	All func(ctx context.Context, namespace string) (of Informers, start func())
}

// member is what is known of one member. Its caches stay as they were when it is lost.
type member struct {
	*Controller
	Member
	queue                            *queue
	exports, namespaces              cache.SharedIndexInformer // anybody's
	imports, copies, derived, slices cache.SharedIndexInformer // ours
	startOurs, startSlices, startAll func()
	ctx                              context.Context

	mu     sync.Mutex
	spaces map[string]*space
	told   map[string]bool // Services of which an event says that they are not imported
}

// space has what is in a namespace in which something is exported.
type space struct {
	services, slices cache.SharedIndexInformer
	stop             context.CancelFunc
}

const (
	byService = "service"
	// Between two looks whether a member serves the API, first and at most; and while it did.
	servedFirst, servedLast, servedStill = 200 * time.Millisecond, 30 * time.Second, time.Minute
	// absentAfter is how long a member must say that it does not serve the API until others lose what they have imported from it.
	absentAfter = 10 * time.Second
)

// Engage starts work in a member until ctx is done, which must be no later than Run's, as soon and as long as the member serves
// the API and lets us list exports. After the end of Run it does nothing.
func (c *Controller) Engage(ctx context.Context, of Member) error {
	c.work.Start(ctx, "mcs", func(ctx context.Context) {
		wait, since := servedFirst, time.Now()
		for ctx.Err() == nil {
			served, known := c.served(ctx, of)
			if served {
				c.whileServed(ctx, of)
				wait, since = servedFirst, time.Now()
				continue
			}
			if !known {
				since = time.Now()
			} else if time.Since(since) > absentAfter {
				c.forget(of.Name)
			}
			sleep(ctx, wait)
			wait = min(2*wait, servedLast)
		}
	})
	return nil
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// served reports whether a member serves the API and lets us list exports. known is false where nobody answers that.
func (c *Controller) served(ctx context.Context, of Member) (served, known bool) {
	ctx, cancel := context.WithTimeout(ctx, c.WriteTimeout)
	defer cancel()
	_, err := of.Client.Resource(serviceExports).List(ctx, metav1.ListOptions{Limit: 1, ResourceVersion: "0"})
	return err == nil, err == nil || apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
}

// forget notes that a member takes no part: what others had imported from it goes.
func (c *Controller) forget(name string) {
	c.mu.Lock()
	was := c.seen[name]
	if was == nil || was.ctx != nil {
		c.seen[name] = &member{exports: nothing(), imports: nothing()}
	}
	c.mu.Unlock()
	if was == nil || was.ctx != nil {
		c.again()
	}
}

// nothing is an informer without objects that never runs.
func nothing() cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(&cache.ListWatch{}, nil, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

// whileServed works in a member until it does not serve the API any more.
func (c *Controller) whileServed(ctx context.Context, of Member) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m, err := c.newMember(ctx, of)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Services are not imported until the cluster is connected again", "cluster", of.Name)
		<-ctx.Done()
		return
	}
	var work sync.WaitGroup
	work.Go(supervisor.Kept(ctx, "mcs", m.serve))
	for ctx.Err() == nil {
		sleep(ctx, servedStill)
		if served, known := c.served(ctx, of); known && !served {
			break
		}
	}
	cancel()
	work.Wait()
}

func (c *Controller) newMember(ctx context.Context, of Member) (*member, error) {
	m := &member{Controller: c, Member: of, queue: newQueue(), ctx: ctx, spaces: map[string]*space{}, told: map[string]bool{}}
	ours, startOurs := of.Ours(ctx, "")
	labelled, startLabelled := of.Ours(ctx, mcsv1beta1.LabelServiceName)
	all, startAll := of.All(ctx, "")
	m.startOurs, m.startSlices, m.startAll = startOurs, startLabelled, startAll
	m.exports, m.namespaces, m.imports, m.copies = all(serviceExports), all(namespaces), ours(serviceImports), ours(services)
	m.derived, m.slices = labelled(services), labelled(endpointSlices)
	own := func(obj any) { c.add(m.queue, keyOf(obj)) }
	labelledOwn := func(obj any) {
		u := held.Object(obj)
		c.add(m.queue, u.GetNamespace()+"/"+u.GetLabels()[mcsv1beta1.LabelServiceName])
	}
	errs := []error{
		index(m.slices, mcsv1beta1.LabelServiceName),
		watch(m.exports, func(obj any) { m.follow(held.About(obj).GetNamespace()); c.changed(keyOf(obj)) }),
		watch(m.imports, own), watch(m.derived, labelledOwn), watch(m.slices, func(obj any) {
			if plan.Ours(held.Object(obj).GetLabels()) { // not of crosscluster
				labelledOwn(obj)
			}
		}),
		watch(m.copies, func(obj any) {
			if u := held.Object(obj); u.GetLabels()[v1beta1.ExportedServiceLabel] != "" {
				c.changed(u.GetNamespace() + "/" + u.GetLabels()[v1beta1.ExportedServiceLabel])
			} else if key := keyOf(obj); object(c.exports, key) != nil {
				c.add(m.queue, key)
			}
		}),
		watch(m.namespaces, func(obj any) {
			for _, key := range c.exportedIn(held.About(obj).GetName()) {
				c.add(m.queue, key)
			}
		}),
	}
	return m, errors.Join(errs...)
}

// index indexes objects by a label that has the name of their Service.
func index(i cache.SharedIndexInformer, label string) error {
	return i.AddIndexers(cache.Indexers{byService: func(obj any) ([]string, error) {
		u := held.Object(obj)
		return []string{u.GetNamespace() + "/" + u.GetLabels()[label]}, nil
	}})
}

func watch(i cache.SharedIndexInformer, do func(obj any)) error {
	_, err := i.AddEventHandler(handler(do))
	return err
}

// serve works until ctx is done. It begins when the caches are synced: before that, all would look superfluous.
func (m *member) serve(ctx context.Context) {
	m.startOurs()
	m.startSlices()
	m.startAll()
	synced := func() bool {
		return m.synced() && m.exports.HasSynced() && m.namespaces.HasSynced() && m.imports.HasSynced() && m.copies.HasSynced() && m.derived.HasSynced() && m.slices.HasSynced()
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced) {
		return
	}
	m.Controller.mu.Lock()
	m.engaged[m], m.seen[m.Name] = true, m
	m.Controller.mu.Unlock()
	defer func() {
		m.Controller.mu.Lock()
		defer m.Controller.mu.Unlock()
		delete(m.engaged, m)
	}()
	m.again()
	var workers sync.WaitGroup
	defer workers.Wait()
	defer m.queue.ShutDown()
	for range m.Workers {
		workers.Go(func() { supervisor.ProcessQueue(ctx, "mcs", m.queue, m.sync) })
	}
	<-ctx.Done()
}

// follow has caches of a namespace while something is exported in it.
func (m *member) follow(namespace string) {
	keys, _ := m.exports.GetIndexer().IndexKeys(cache.NamespaceIndex, namespace) // the index is there
	needed := false
	for _, key := range keys {
		needed = needed || m.owns(key)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.spaces[namespace]
	switch {
	case needed && s == nil:
		ctx, stop := context.WithCancel(m.ctx)
		of, start := m.All(ctx, namespace)
		s = &space{services: of(services), slices: of(endpointSlices), stop: stop}
		exported := func(key string) {
			if object(m.exports, key) != nil {
				m.changed(key)
			}
		}
		if err := errors.Join(index(s.slices, discoveryv1.LabelServiceName), watch(s.services, func(obj any) { exported(keyOf(obj)) }), watch(s.slices, func(obj any) {
			u := held.Object(obj)
			exported(u.GetNamespace() + "/" + u.GetLabels()[discoveryv1.LabelServiceName])
		})); err != nil {
			stop()
			return // only informers that run fail
		}
		m.spaces[namespace] = s
		start()
		go supervisor.Keep(ctx, "mcs", func(ctx context.Context) { // a Service that is not there brings no event
			if cache.WaitForCacheSync(ctx.Done(), s.synced) {
				for _, key := range m.exportedIn(namespace) {
					m.changed(key)
				}
			}
		})
	case !needed && s != nil:
		s.stop()
		delete(m.spaces, namespace)
	}
}

func (s *space) synced() bool { return s.services.HasSynced() && s.slices.HasSynced() }

// export returns what the member exports under a name: nil, true for nothing, and false where that is not known yet.
func (m *member) export(key string) (e *plan.Export, known bool) {
	of := read[mcsv1beta1.ServiceExport](object(m.exports, key))
	if of == nil || of.DeletionTimestamp != nil {
		return nil, true
	}
	namespace, _, _ := cache.SplitMetaNamespaceKey(key) // which we made
	m.mu.Lock()
	s := m.spaces[namespace]
	m.mu.Unlock()
	if s == nil || !s.synced() {
		return nil, false
	}
	e = &plan.Export{Cluster: m.Name, Export: of, Service: read[corev1.Service](object(s.services, key))}
	if e.Service != nil && e.Service.DeletionTimestamp != nil {
		e.Service = nil
	}
	e.Balancer = m.made(namespace+"/"+plan.BalancerName(of.Name), m.copies, v1beta1.ExportedServiceLabel, of.Name)
	objs, _ := s.slices.GetIndexer().ByIndex(byService, key) // the index is there
	for _, obj := range objs {
		if slice := read[discoveryv1.EndpointSlice](held.Object(obj)); slice != nil {
			e.Slices = append(e.Slices, slice)
		}
	}
	return e, true
}

// input returns all that counts for a Service in the member.
func (m *member) input(key string) plan.Input {
	namespace, name, _ := cache.SplitMetaNamespaceKey(key) // which we made
	in := plan.Input{Federation: m.Federation, Namespace: namespace, Name: name, Member: m.Name, Sources: m.sources(key)}
	m.Controller.mu.Lock()
	cluster := m.known[m.Name]
	m.Controller.mu.Unlock()
	ns := object(m.namespaces, namespace)
	in.Imports = ns != nil && ns.GetDeletionTimestamp() == nil && cluster != nil && refused(cluster, namespace) == ""
	if cluster != nil {
		in.Network = cluster.Spec.Network
	}
	in.Have.Import = read[mcsv1beta1.ServiceImport](object(m.imports, key))
	in.Have.Derived = m.made(namespace+"/"+plan.DerivedName(name), m.derived, mcsv1beta1.LabelServiceName, name)
	in.Have.Balancer = m.made(namespace+"/"+plan.BalancerName(name), m.copies, v1beta1.ExportedServiceLabel, name)
	objs, _ := m.slices.GetIndexer().ByIndex(byService, key) // the index is there
	for _, obj := range objs {
		if s := read[discoveryv1.EndpointSlice](held.Object(obj)); s != nil && plan.Ours(s.Labels) {
			in.Have.Slices = append(in.Have.Slices, s)
		}
	}
	return in
}

// made returns a Service that was made for another one, as its label says; nil if there is none.
func (m *member) made(key string, from cache.SharedIndexInformer, label, name string) *corev1.Service {
	s := read[corev1.Service](object(from, key))
	if s == nil || s.Labels[label] != name || s.Labels[v1beta1.ManagedByLabel] != m.Federation {
		return nil
	}
	return s
}
