package clustersetip

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/resourceversion"
	"federation/controllers/clustersetip/plan"
	"federation/controllers/supervisor"
)

var (
	services    = corev1.SchemeGroupVersion.WithResource("services")
	ipAddresses = networkingv1.SchemeGroupVersion.WithResource("ipaddresses")
)

// catchUp is how long the cache may take to see our write.
const catchUp = 10 * time.Second

// passTimeout bounds one pass.
const passTimeout = time.Minute

// retry is the delay after a failed pass.
const retry = time.Second

// Options are what a Controller needs. All but Ranges are required.
type Options struct {
	Ranges plan.Ranges
	// Client writes to the federation. Informers are the federation's, shared with others, which start them.
	Client    dynamic.Interface
	Informers func(schema.GroupVersionResource) cache.SharedIndexInformer
	// Recorder takes events about Services.
	Recorder record.EventRecorder
}

// Controller allocates clusterset IPs. Make it with New.
type Controller struct {
	Options
	services, addresses cache.SharedIndexInformer
	// wake has an element when a pass is due.
	wake supervisor.Wake

	mu sync.Mutex
	// asking are the Services with the annotation or our condition, by namespace/name. They are never changed in place.
	asking map[string]asked

	// told and written belong to Run's goroutine: the last event of each Service, and the addresses claimed but not yet
	// in the cache.
	told    map[string]string
	written map[netip.Addr]claimed
}

// asked is a Service, and what our last write left of it.
type asked struct {
	*corev1.Service
	resourceversion.Left
}

// claimed is the owner of a new address, and until when the cache must have seen it.
type claimed struct {
	key   string
	until time.Time
}

// New makes a controller. It requests its informers, so that their owner can start them; Run subscribes.
func New(o Options) *Controller {
	return &Controller{
		Options: o, services: o.Informers(services), addresses: o.Informers(ipAddresses),
		wake: supervisor.NewWake(), asking: map[string]asked{}, told: map[string]string{}, written: map[netip.Addr]claimed{},
	}
}

// Run allocates addresses until ctx is done.
func (c *Controller) Run(ctx context.Context) error {
	first, err := c.services.AddEventHandler(eventHandler(c.serviceChanged))
	if err != nil {
		return fmt.Errorf("watching Services: %w", err)
	}
	defer func() { _ = c.services.RemoveEventHandler(first) }() // fails only for a handler that is not registered
	second, err := c.addresses.AddEventHandler(eventHandler(func(any, bool) { c.wake.Signal() }))
	if err != nil {
		return fmt.Errorf("watching IPAddresses: %w", err)
	}
	defer func() { _ = c.addresses.RemoveEventHandler(second) }()
	if !cache.WaitForCacheSync(ctx.Done(), first.HasSynced, second.HasSynced) {
		return nil
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.wake:
		}
		if err := c.reconcile(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Failed to allocate or release clusterset IPs, will retry")
			time.AfterFunc(retry, c.wake.Signal)
		}
	}
}

// eventHandler calls changed for each object, with whether it is gone.
func eventHandler(changed func(obj any, gone bool)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { changed(obj, false) }, UpdateFunc: func(_, obj any) { changed(obj, false) }, DeleteFunc: func(obj any) { changed(obj, true) },
	}
}

// serviceChanged takes in a Service that concerns us now or did before.
func (c *Controller) serviceChanged(obj any, gone bool) {
	key, _ := cache.DeletionHandlingMetaNamespaceKeyFunc(obj) // never fails for objects of informers
	var service *corev1.Service
	if u, ok := obj.(*unstructured.Unstructured); ok && !gone {
		service = decodeService(u)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.asking[key]
	switch {
	case service == nil:
		delete(c.asking, key)
	case was.Service == nil || was.UID != service.UID || !was.Unseen(service):
		c.asking[key] = asked{Service: service}
	}
	if was.Service != nil || service != nil {
		c.wake.Signal()
	}
}

// decodeService decodes a Service with the annotation or our condition, and returns nil for others.
func decodeService(u *unstructured.Unstructured) *corev1.Service {
	s := &corev1.Service{}
	conditions, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
	if _, asks := u.GetAnnotations()[v1beta1.ClusterSetIPAnnotation]; !asks && conditions == nil {
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, s); err != nil || !wantsAddress(s) && conditionOf(s) == nil {
		return nil
	}
	return s
}

// wantsAddress reports whether a Service has the annotation, and may have addresses.
func wantsAddress(s *corev1.Service) bool {
	_, there := s.Annotations[v1beta1.ClusterSetIPAnnotation]
	return there && s.Spec.Type != corev1.ServiceTypeExternalName
}

// reconcile carries out what Decide returns for the cached objects.
func (c *Controller) reconcile(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	in, objects := c.snapshot()
	decision := plan.Decide(in)
	failed := map[string]bool{}
	var errs []error
	for a, key := range decision.Claims {
		if err := c.createAddress(ctx, a, objects[key]); err != nil {
			failed[key] = true
			errs = append(errs, err)
		}
	}
	for key, value := range decision.Values {
		if !failed[key] {
			errs = append(errs, c.writeAnnotation(ctx, objects[key], value))
		}
	}
	for _, a := range decision.Leaks {
		errs = append(errs, c.deleteAddress(ctx, a, in.Held[a]))
	}
	for key, service := range objects {
		errs = append(errs, c.writeCondition(ctx, service, decision.Faults[key]))
	}
	return errors.Join(errs...)
}

// snapshot returns the input of Decide, and the Services by key.
func (c *Controller) snapshot() (in plan.Input, objects map[string]*corev1.Service) {
	in = plan.Input{Ranges: c.Ranges, Held: map[netip.Addr]string{}}
	for _, obj := range c.addresses.GetStore().List() {
		u, _ := obj.(*unstructured.Unstructured)
		if a, err := netip.ParseAddr(u.GetName()); err == nil {
			in.Held[a] = holderKey(u)
		}
	}
	for a, w := range c.written {
		if _, seen := in.Held[a]; seen || time.Now().After(w.until) {
			delete(c.written, a)
		} else {
			in.Held[a] = w.key
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	objects = map[string]*corev1.Service{}
	for key, asked := range c.asking {
		s := asked.Service
		objects[key] = s
		if wantsAddress(s) {
			policy := s.Spec.IPFamilyPolicy
			in.Services = append(in.Services, plan.Service{
				Key: key, Value: s.Annotations[v1beta1.ClusterSetIPAnnotation], Families: s.Spec.IPFamilies, Created: s.CreationTimestamp.Time,
				Dual: policy != nil && *policy != corev1.IPFamilyPolicySingleStack,
			})
		}
	}
	for key := range c.told {
		if objects[key] == nil {
			delete(c.told, key)
		}
	}
	return in, objects
}
