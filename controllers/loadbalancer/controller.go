package loadbalancer

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net/netip"
	"reflect"
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
	// ServicePorts are those at which it serves Services, by TCP and, with UDP, by that too.
	ServicePorts plan.PortRanges
	UDP          bool
}

// Controller keeps a proxy in line with the federation. Make it with New.
type Controller struct {
	Options
	services, ingresses, policies, grants cache.SharedIndexInformer
	secrets                               *secrets
	ready                                 chan struct{}

	mu      sync.Mutex
	changed changes
	wake    supervisor.Wake

	// The following belong to the goroutine of Run.
	tables   *plan.Tables
	offers   map[string][]servicednsplan.Offer
	settings map[string]*v1beta1.DNSSettings
	kept     map[string]servicednsplan.Keep
	// balancers are the federation's own load balancers, by address.
	balancers map[netip.Addr]string
	// left are pools that the proxy had when a pass failed.
	left []plan.PoolID
}

// changes are what a pass has to look at.
type changes struct {
	// certs: a certificate has changed. grants: a DNSNameGrant has.
	certs, grants bool
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
		Options: o, ready: make(chan struct{}), wake: supervisor.NewWake(), changed: newChanges(),
		services: o.Informers(corev1.SchemeGroupVersion.WithResource("services")), ingresses: o.Informers(networkingv1.SchemeGroupVersion.WithResource("ingresses")),
		policies: o.Informers(v1beta1.PoliciesResource), grants: o.Informers(v1beta1.DNSNameGrantsResource),
		tables: plan.NewTables(o.ServicePorts, o.UDP), offers: map[string][]servicednsplan.Offer{}, settings: map[string]*v1beta1.DNSSettings{},
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
	c.note(func(s *changes) { s.kept = kept })
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
	c.wake.Signal()
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
		if !guard(ctx, func() { c.pass(ctx, s) }) {
			c.startOver(s)
		}
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
	on(c.grants, func(s *changes, _ string) { s.grants = true })
	return synced, err
}

// guard does what may panic over what somebody says, and reports whether it did not. It has logged the panic then.
func guard(ctx context.Context, do func()) bool {
	return supervisor.Protect(ctx, "loadbalancer", func() error { do(); return nil }) == nil
}

// pass brings changes to the proxy: pools before the routes that lead to them.
func (c *Controller) pass(ctx context.Context, s changes) {
	change, pools := c.readChanges(ctx, s)
	before := c.tables.Table()
	d := c.tables.Change(change)
	for _, r := range d.Reasons {
		klog.InfoS("Part of an Ingress or Service is not served", "reason", r.String())
	}
	if d.Secrets {
		c.secrets.want(c.tables.Secrets())
	}
	set := slices.Concat(d.Come, d.Renamed, c.tables.PoolsOf(pools))
	if s.balancers != nil && !maps.Equal(s.balancers, c.balancers) {
		c.balancers, set = s.balancers, c.tables.Pools()
	}
	c.setPools(ctx, set)
	if table := c.tables.Table(); table != before || d.Secrets || s.certs {
		c.Proxy.SetRoutes(table, c.secrets.certificates())
	}
	for _, id := range slices.Concat(d.Gone, c.left) {
		if !c.tables.HasPool(id) {
			c.Proxy.DropPool(id)
		}
	}
	c.left = nil
}

// readChanges reads what has changed. It returns what that is for tables, and the Services whose pools are to be decided again, by namespace/name.
func (c *Controller) readChanges(ctx context.Context, s changes) (change plan.Change, pools map[string]bool) {
	change = plan.Change{Ingresses: map[string]*networkingv1.Ingress{}, Services: map[string]*corev1.Service{}, Kept: s.kept}
	pools = map[string]bool{}
	for key := range s.ingresses {
		guard(ctx, func() {
			if i := c.readIngress(key); !isSameIngress(c.tables.Ingress(key), i) {
				change.Ingresses[key] = i
			}
		})
	}
	for key := range s.services {
		guard(ctx, func() {
			if is := c.readService(key); !apiequality.Semantic.DeepEqual(c.tables.Service(key), is) {
				change.Services[key], pools[key] = is, true
			}
			pools[key] = c.readSettings(key) || pools[key]
		})
	}
	for policy := range s.policies {
		namespace, _, _ := strings.Cut(policy, "/")
		for key := range c.tables.Services() {
			if strings.HasPrefix(key, namespace+"/") {
				guard(ctx, func() { pools[key] = c.readSettings(key) || pools[key] })
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
		c.kept = s.kept
	}
	if s.grants {
		change.Grants = new(c.readGrants())
	}
	return change, pools
}

// setPools has pools decided from what is known now. One that cannot be decided stays as it was.
func (c *Controller) setPools(ctx context.Context, ids []plan.PoolID) {
	done := make(map[plan.PoolID]bool, len(ids))
	for _, id := range ids {
		if done[id] {
			continue
		}
		done[id] = true
		key := id.Key()
		guard(ctx, func() {
			c.Proxy.SetPool(plan.PoolInput{
				ID: id, Site: c.Site, Service: c.tables.Service(key), ServerName: c.tables.ServerName(id), Offers: c.offers[key], Settings: c.settings[key], Balancers: c.balancers,
			})
		})
	}
}

// startOver has the next pass read all, and what the one that failed did not come to. Until then the proxy has what it had.
func (c *Controller) startOver(failed changes) {
	c.tables, c.left = plan.NewTables(c.ServicePorts, c.UDP), c.Proxy.Pools()
	c.mu.Lock()
	defer c.mu.Unlock()
	next := &c.changed
	for _, key := range c.ingresses.GetStore().ListKeys() {
		next.ingresses[key] = true
	}
	for _, key := range c.services.GetStore().ListKeys() {
		next.services[key] = true
	}
	maps.Copy(failed.offers, next.offers)
	next.offers, next.grants = failed.offers, true
	if next.kept == nil {
		next.kept = c.kept
	}
	if next.balancers == nil {
		next.balancers = failed.balancers
	}
}

// readIngress reads an Ingress; nil if it is none that is served.
func (c *Controller) readIngress(key string) *networkingv1.Ingress {
	is := &networkingv1.Ingress{}
	if !read(c.ingresses, key, is) || !v1beta1.IsBalanced(is) {
		return nil
	}
	is.ObjectMeta, is.Status = slimMeta(&is.ObjectMeta), networkingv1.IngressStatus{}
	return is
}

// isSameIngress reports whether two states of an Ingress say the same; nil is for none.
func isSameIngress(a, b *networkingv1.Ingress) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.UID == b.UID && a.Generation == b.Generation && v1beta1.PassesTLS(a) == v1beta1.PassesTLS(b)
}

// readService reads what matters of a Service; nil if there is none. Those without load balancers are read too: the table says why they are no backends.
func (c *Controller) readService(key string) *corev1.Service {
	is := &corev1.Service{}
	if !read(c.services, key, is) {
		delete(c.settings, key)
		return nil
	}
	slim := &corev1.Service{ObjectMeta: slimMeta(&is.ObjectMeta), Spec: corev1.ServiceSpec{Type: is.Spec.Type, LoadBalancerClass: is.Spec.LoadBalancerClass, Ports: is.Spec.Ports}}
	if v1beta1.IsBalancedService(is) {
		slim.Status.LoadBalancer = is.Status.LoadBalancer
	}
	return slim
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
	return !reflect.DeepEqual(was, o.Settings)
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
