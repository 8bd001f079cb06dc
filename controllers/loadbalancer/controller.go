package loadbalancer

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/loadbalancer/plan"
	"federation/controllers/servicedns"
	servicednsplan "federation/controllers/servicedns/plan"
	"federation/controllers/supervisor"
)

// Proxy is what a Controller keeps in line; package proxy has it.
type Proxy interface {
	SetRoutes(table *plan.Table, certs map[string]*tls.Certificate)
	SetPool(in plan.PoolInput)
	DropPool(id plan.PoolID)
	Pools() []plan.PoolID
}

// Options are what a Controller needs.
type Options struct {
	Informers servicedns.Informers
	// Kube reads Secrets.
	Kube  kubernetes.Interface
	Proxy Proxy
	Site  plan.Site
	// ServicePorts are those at which it serves Services.
	ServicePorts plan.PortRanges
}

// Controller keeps a proxy in line with the federation. Make it with New.
type Controller struct {
	Options
	services, ingresses, policies, grants cache.SharedIndexInformer
	secrets                               *secrets
	ready                                 chan struct{}

	mu      sync.Mutex
	changed changes
	wake    chan struct{}

	// The following belong to the goroutine of Run.
	world    plan.World
	byKey    map[string]*networkingv1.Ingress
	offers   map[string][]servicednsplan.Offer
	settings map[string]*v1beta1.DNSSettings
	table    *plan.Table
	// balancers are the federation's own load balancers, by address.
	balancers map[netip.Addr]string
	// names are what checks of pools ask for by TLS.
	names   map[plan.PoolID]string
	reasons map[string]bool
}

// changes are what a pass has to look at.
type changes struct {
	// routes: the table has to be made again. certs: a certificate has changed.
	routes, certs bool
	// ingresses, services and policies are by namespace/name.
	ingresses, services, policies map[string]bool
	// offers are new ones, by namespace/name; offered: they have come once.
	offers  map[string][]servicednsplan.Offer
	offered bool
	// kept are the owners of hosts, if they have changed; balancers the federation's own load balancers, by address.
	kept      map[string]servicednsplan.Keep
	balancers map[netip.Addr]string
}

func newChanges() changes {
	return changes{ingresses: map[string]bool{}, services: map[string]bool{}, policies: map[string]bool{}, offers: map[string][]servicednsplan.Offer{}}
}

// New makes a controller. It requests its informers, so that their owner can start them.
func New(o Options) *Controller {
	c := &Controller{
		Options: o, ready: make(chan struct{}), wake: make(chan struct{}, 1), changed: newChanges(),
		services: o.Informers(corev1.SchemeGroupVersion.WithResource("services")), ingresses: o.Informers(networkingv1.SchemeGroupVersion.WithResource("ingresses")),
		policies: o.Informers(v1beta1.PoliciesResource), grants: o.Informers(v1beta1.DNSNameGrantsResource),
		world: plan.World{Services: map[string]*corev1.Service{}, ServicePorts: o.ServicePorts}, byKey: map[string]*networkingv1.Ingress{}, offers: map[string][]servicednsplan.Offer{}, settings: map[string]*v1beta1.DNSSettings{},
		table: plan.Routes(plan.World{}), reasons: map[string]bool{},
	}
	c.secrets = newSecrets(o.Kube, func() { c.note(func(s *changes) { s.certs = true }) })
	return c
}

// Offers takes what clusters have of Services: give it to servicedns.Options.
func (c *Controller) Offers(offers map[string][]servicednsplan.Offer) {
	c.note(func(s *changes) { maps.Copy(s.offers, offers); s.offered = true })
}

// Kept takes the owners of hosts: give it to servicedns.Options.
func (c *Controller) Kept(kept map[string]servicednsplan.Keep) {
	c.note(func(s *changes) { s.kept, s.routes = kept, true })
}

// Balancers takes the federation's own load balancers: give it to servicedns.Options.
func (c *Controller) Balancers(all []servicednsplan.LoadBalancer) {
	c.note(func(s *changes) { s.balancers = plan.NamesByAddress(all) })
}

// Ready reports whether the proxy has all that the federation says.
func (c *Controller) Ready() error {
	select {
	case <-c.ready:
		return nil
	default:
		return errors.New("the federation has not been read yet")
	}
}

// WaitReady waits until the proxy has all that the federation says. It returns false if ctx ends before.
func (c *Controller) WaitReady(ctx context.Context) bool {
	select {
	case <-c.ready:
		return true
	case <-ctx.Done():
		return false
	}
}

func (c *Controller) note(change func(*changes)) {
	c.mu.Lock()
	change(&c.changed)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Run keeps the proxy in line until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	synced, err := c.subscribe()
	if err != nil {
		return err
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil
	}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(supervisor.Kept(ctx, "loadbalancer", c.secrets.run))
	ready, offered := false, false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.wake:
		}
		c.mu.Lock()
		s := c.changed
		c.changed = newChanges()
		c.mu.Unlock()
		_ = supervisor.Protect(ctx, "loadbalancer", func() error { c.pass(s); return nil }) // it has logged a panic
		if offered = offered || s.offered; offered && !ready && c.secrets.haveBeenRead() {
			ready = true
			close(c.ready)
		}
	}
}

// subscribe notes changes of what is watched.
func (c *Controller) subscribe() (synced []cache.InformerSynced, err error) {
	on := func(i cache.SharedIndexInformer, note func(s *changes, key string)) {
		take := func(obj any) {
			if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
				c.note(func(s *changes) { note(s, key) })
			}
		}
		handler, failed := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: take, UpdateFunc: func(_, now any) { take(now) }, DeleteFunc: take})
		if failed != nil {
			err = errors.Join(err, failed)
			return
		}
		synced = append(synced, handler.HasSynced)
	}
	on(c.ingresses, func(s *changes, key string) { s.ingresses[key] = true })
	on(c.services, func(s *changes, key string) { s.services[key] = true })
	on(c.policies, func(s *changes, key string) { s.policies[key] = true })
	on(c.grants, func(s *changes, _ string) { s.routes = true })
	return synced, err
}

// pass brings changes to the proxy: pools before the routes that lead to them.
func (c *Controller) pass(s changes) {
	routes := s.routes
	for key := range s.ingresses {
		routes = c.readIngress(key) || routes
	}
	pools := map[string]bool{} // of Services, by namespace/name
	for key := range s.services {
		portsChanged, changed := c.readService(key)
		routes = routes || portsChanged
		pools[key] = pools[key] || changed
	}
	for policy := range s.policies {
		namespace, _, _ := strings.Cut(policy, "/")
		for key := range c.world.Services {
			if strings.HasPrefix(key, namespace+"/") {
				pools[key] = c.readSettings(key) || pools[key]
			}
		}
	}
	for key, offers := range s.offers {
		c.offers[key], pools[key] = offers, true
		if offers == nil {
			delete(c.offers, key)
		}
	}
	if s.kept != nil {
		c.world.Kept = s.kept
	}
	if routes {
		c.world.Ingresses = slices.Collect(maps.Values(c.byKey))
		c.world.Grants = c.readGrants()
		c.table = plan.Routes(c.world)
		c.secrets.want(c.table.Secrets())
		c.logReasons()
	}
	if s.balancers != nil && !maps.Equal(s.balancers, c.balancers) {
		c.balancers = s.balancers
		for id := range c.table.Pools() {
			pools[id.Key()] = true
		}
	}
	c.setPools(pools, routes)
	if routes || s.certs {
		c.Proxy.SetRoutes(c.table, c.secrets.certificates())
	}
	if routes {
		c.dropPools()
	}
}

// setPools sets the pools of the Services, and where the table is new those that the proxy does not have.
func (c *Controller) setPools(of map[string]bool, all bool) {
	have := map[plan.PoolID]bool{}
	if all {
		for _, id := range c.Proxy.Pools() {
			have[id] = true
		}
	}
	before := c.names
	if all {
		c.names = c.table.ServerNames()
	}
	for id := range c.table.Pools() {
		if name := c.names[id]; of[id.Key()] || all && (!have[id] || name != before[id]) {
			c.Proxy.SetPool(plan.PoolInput{ID: id, Site: c.Site, Service: c.world.Services[id.Key()], ServerName: name, Offers: c.offers[id.Key()], Settings: c.settings[id.Key()], Balancers: c.balancers})
		}
	}
}

// dropPools drops the pools that no route leads to any more.
func (c *Controller) dropPools() {
	wanted := c.table.Pools()
	for _, id := range c.Proxy.Pools() {
		if !wanted[id] {
			c.Proxy.DropPool(id)
		}
	}
}

// logReasons logs what has become wrong with Ingresses and Services.
func (c *Controller) logReasons() {
	now := map[string]bool{}
	for _, r := range c.table.Reasons {
		text := r.String()
		if now[text] = true; !c.reasons[text] {
			klog.InfoS("Part of an Ingress or Service is not served", "reason", text)
		}
	}
	c.reasons = now
}

// readIngress reads an Ingress, and reports whether the table may change.
func (c *Controller) readIngress(key string) bool {
	was := c.byKey[key]
	is := &networkingv1.Ingress{}
	if !read(c.ingresses, key, is) || !v1beta1.IsBalanced(is) {
		delete(c.byKey, key)
		return was != nil
	}
	is.ObjectMeta, is.Status = slimMeta(&is.ObjectMeta), networkingv1.IngressStatus{}
	c.byKey[key] = is
	return was == nil || was.UID != is.UID || was.Generation != is.Generation || v1beta1.IsBalanced(was) != v1beta1.IsBalanced(is) || v1beta1.PassesTLS(was) != v1beta1.PassesTLS(is)
}

// readService reads a Service. Those without load balancers are kept too: the table says why they are no backends.
func (c *Controller) readService(key string) (portsChanged, changed bool) {
	was := c.world.Services[key]
	is := &corev1.Service{}
	if !read(c.services, key, is) {
		delete(c.world.Services, key)
		delete(c.settings, key)
		return was != nil, was != nil
	}
	slim := &corev1.Service{ObjectMeta: slimMeta(&is.ObjectMeta), Spec: corev1.ServiceSpec{Type: is.Spec.Type, LoadBalancerClass: is.Spec.LoadBalancerClass, Ports: is.Spec.Ports}}
	if v1beta1.IsBalancedService(is) {
		slim.Status.LoadBalancer = is.Status.LoadBalancer
	}
	is = slim
	c.world.Services[key] = is
	settings := c.readSettings(key)
	if was == nil {
		return true, true
	}
	portsChanged = was.UID != is.UID || !apiequality.Semantic.DeepEqual(was.Spec, is.Spec) || v1beta1.IsBalancedService(was) != v1beta1.IsBalancedService(is) ||
		!apiequality.Semantic.DeepEqual(was.Status.LoadBalancer, is.Status.LoadBalancer) // which says who has a port
	return portsChanged, portsChanged || settings || !maps.Equal(was.Annotations, is.Annotations)
}

// slimMeta is what is kept of the metadata of many objects.
func slimMeta(of *metav1.ObjectMeta) metav1.ObjectMeta {
	slim := metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name, UID: of.UID, Generation: of.Generation, CreationTimestamp: of.CreationTimestamp, DeletionTimestamp: of.DeletionTimestamp}
	for _, key := range []string{v1beta1.FallbackBelowAnnotation, v1beta1.ProxyProtocolAnnotation, v1beta1.SSLPassthroughAnnotation} {
		if value, there := of.Annotations[key]; there {
			metav1.SetMetaDataAnnotation(&slim, key, value)
		}
	}
	return slim
}

// readSettings reads a Service's settings for DNS, and reports whether they differ. Those that cannot be read stay.
func (c *Controller) readSettings(key string) bool {
	obj, exists, _ := c.services.GetStore().GetByKey(key) // never fails for an in-memory store
	u, ok := obj.(*unstructured.Unstructured)
	if !exists || !ok {
		return false
	}
	var policies []*v1beta1.PlacementPolicy
	for _, obj := range c.policies.GetStore().List() {
		p := &v1beta1.PlacementPolicy{}
		if u, ok := obj.(*unstructured.Unstructured); ok && u.GetNamespace() == namespaceOf(key) && runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p) == nil {
			policies = append(policies, p)
		}
	}
	o, err := servicednsplan.Read(u, policies)
	if err != nil {
		klog.ErrorS(err, "Cannot read the Service's settings, keeping those before", "service", key)
		return false
	}
	was := c.settings[key]
	c.settings[key] = o.Settings
	return was != o.Settings && !sameSettings(was, o.Settings)
}

func (c *Controller) readGrants() (all []*v1beta1.DNSNameGrant) {
	for _, obj := range c.grants.GetStore().List() {
		g := &v1beta1.DNSNameGrant{}
		if u, ok := obj.(*unstructured.Unstructured); ok && runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, g) == nil {
			all = append(all, g)
		}
	}
	return all
}

// read decodes an object of an informer; false if it is gone, or cannot be decoded.
func read(from cache.SharedIndexInformer, key string, into any) bool {
	obj, exists, _ := from.GetStore().GetByKey(key) // never fails for an in-memory store
	u, ok := obj.(*unstructured.Unstructured)
	if !exists || !ok {
		return false
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
		klog.ErrorS(err, "Cannot decode an object", "object", key)
		return false
	}
	return true
}

func namespaceOf(key string) string {
	namespace, _, _ := strings.Cut(key, "/")
	return namespace
}
