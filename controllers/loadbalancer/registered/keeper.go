package registered

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/loadbalancer/plan"
	"federation/controllers/servicedns"
	servicednsplan "federation/controllers/servicedns/plan"
)

// lookEvery is how often it is looked which load balancers are alive.
const lookEvery = 500 * time.Millisecond

// Keeper writes which load balancers are alive, and gives Ingresses and Services of their classes their addresses. One process at a time runs it.
type Keeper struct {
	Kube kubernetes.Interface
	// Informers has the Ingresses and Services; their owner starts them.
	Informers servicedns.Informers

	// written is the ConfigMap as written last; nil: it has to be read.
	written *corev1.ConfigMap
	missing bool

	mu     sync.Mutex
	leases map[string]plan.Lease
}

// Run keeps both up to date until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	k.leases, k.written = map[string]plan.Lease{}, nil
	from := informers.NewSharedInformerFactoryWithOptions(k.Kube, 0, informers.WithNamespace(v1beta1.LoadBalancersNamespace))
	seen, err := from.Coordination().V1().Leases().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: k.see, UpdateFunc: func(before, now any) { k.see(now) }, DeleteFunc: k.forget,
	})
	if err != nil {
		return err
	}
	ingresses := k.Informers(networkingv1.SchemeGroupVersion.WithResource("ingresses"))
	services := k.Informers(corev1.SchemeGroupVersion.WithResource("services"))
	from.Start(ctx.Done())
	defer from.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), seen.HasSynced, ingresses.HasSynced, services.HasSynced) {
		return nil
	}
	ticks := time.NewTicker(lookEvery)
	defer ticks.Stop()
	for {
		if err := k.look(ctx, ingresses.GetStore(), services.GetStore()); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Failed to update what is known of load balancers, will retry")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

// see notes a Lease. The time is this process's own: clocks of load balancers may differ.
func (k *Keeper) see(obj any) {
	l, ok := obj.(*coordinationv1.Lease)
	if !ok {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.leases[l.Name] = plan.Lease{Says: l.Annotations[v1beta1.LoadBalancerAnnotation], Renewed: time.Now()}
}

func (k *Keeper) forget(obj any) {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	if l, ok := obj.(*coordinationv1.Lease); ok {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.leases, l.Name)
	}
}

// look writes what has changed. It reads what was written only at the start, and after a write has failed.
func (k *Keeper) look(ctx context.Context, ingresses, services cache.Store) (err error) {
	configMaps := k.Kube.CoreV1().ConfigMaps(v1beta1.FederationNamespace)
	if k.written == nil {
		k.written, err = configMaps.Get(ctx, v1beta1.LoadBalancersConfigMap, metav1.GetOptions{})
		if k.missing = apierrors.IsNotFound(err); k.missing {
			k.written = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.LoadBalancersConfigMap}}
		} else if err != nil {
			k.written = nil
			return err
		}
	}
	k.mu.Lock()
	alive := plan.Alive(k.leases, k.written.Data, time.Now())
	k.mu.Unlock()
	if !maps.Equal(alive, k.written.Data) {
		next := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: k.written.Name, ResourceVersion: k.written.ResourceVersion}, Data: alive}
		if k.missing {
			k.written, err = configMaps.Create(ctx, next, metav1.CreateOptions{})
		} else {
			k.written, err = configMaps.Update(ctx, next, metav1.UpdateOptions{})
		}
		if err != nil {
			k.written = nil
			return err
		}
		k.missing = false
	}
	return errors.Join(k.report(ctx, ingresses, plan.Addresses(alive)), k.reportServices(ctx, services, alive))
}

// reportServices writes the addresses, and which ports are served there, into the status of the Services that lack them.
func (k *Keeper) reportServices(ctx context.Context, services cache.Store, alive map[string]string) error {
	all := map[string]*corev1.Service{}
	for _, obj := range services.List() {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok || !servicednsplan.IsBalanced(u) {
			continue
		}
		s := &corev1.Service{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, s); err == nil { // the API server has decoded it
			all[s.Namespace+"/"+s.Name] = s
		}
	}
	for key, want := range plan.ServiceStatus(all, alive) {
		s := all[key]
		if sameIngress(s.Status.LoadBalancer.Ingress, want) {
			continue
		}
		body, err := json.Marshal(map[string]any{"status": map[string]any{"loadBalancer": map[string]any{"ingress": want}}})
		if err != nil {
			return err
		}
		if _, err := k.Kube.CoreV1().Services(s.Namespace).Patch(ctx, s.Name, types.MergePatchType, body, metav1.PatchOptions{}, "status"); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// sameIngress compares addresses and ports. The API server adds a mode to each.
func sameIngress(a, b []corev1.LoadBalancerIngress) bool {
	return slices.EqualFunc(a, b, func(x, y corev1.LoadBalancerIngress) bool {
		return x.IP == y.IP && apiequality.Semantic.DeepEqual(x.Ports, y.Ports)
	})
}

// report writes the addresses into the status of the Ingresses that lack them.
func (k *Keeper) report(ctx context.Context, ingresses cache.Store, addresses []netip.Addr) error {
	want := []any{}
	for _, a := range addresses {
		want = append(want, map[string]any{"ip": a.String()})
	}
	for _, obj := range ingresses.List() {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok || !servicednsplan.IsBalanced(u) || u.GetDeletionTimestamp() != nil || sameAddresses(u, addresses) {
			continue
		}
		body, err := json.Marshal(map[string]any{"status": map[string]any{"loadBalancer": map[string]any{"ingress": want}}})
		if err != nil {
			return err
		}
		if _, err := k.Kube.NetworkingV1().Ingresses(u.GetNamespace()).Patch(ctx, u.GetName(), types.MergePatchType, body, metav1.PatchOptions{}, "status"); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// sameAddresses reports whether an Ingress has these addresses.
func sameAddresses(u *unstructured.Unstructured, addresses []netip.Addr) bool {
	is, _, _ := unstructured.NestedSlice(u.Object, "status", "loadBalancer", "ingress")
	if len(is) != len(addresses) {
		return false
	}
	for i, item := range is {
		if m, ok := item.(map[string]any); !ok || m["ip"] != addresses[i].String() {
			return false
		}
	}
	return true
}
