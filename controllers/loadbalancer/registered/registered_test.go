package registered

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
)

// asUnstructured is the informer's own objects as the federation's caches give them out.
func asUnstructured(obj any) (any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	u := &unstructured.Unstructured{Object: content}
	if u.SetKind("Ingress"); obj != nil {
		if _, isService := obj.(*corev1.Service); isService {
			u.SetKind("Service")
		}
	}
	return u, err
}

// TestLoadBalancersComeAndGo: their addresses are in the ConfigMap and in the status of Ingresses of the class while they live, and of a Service if they serve its port.
func TestLoadBalancersComeAndGo(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	ingress := func(name, class string) *networkingv1.Ingress {
		return &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: networkingv1.IngressSpec{IngressClassName: &class}}
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new(v1beta1.LoadBalancerClassName), Ports: []corev1.ServicePort{{Port: 5432}},
	}}
	kube := fake.NewClientset(ingress("web", v1beta1.IngressClassName), ingress("other", "nginx"), service)
	shared := informers.NewSharedInformerFactory(kube, 0)
	byResource := map[string]cache.SharedIndexInformer{"ingresses": shared.Networking().V1().Ingresses().Informer(), "services": shared.Core().V1().Services().Informer()}
	for _, informer := range byResource {
		if err := informer.SetTransform(asUnstructured); err != nil {
			t.Fatal(err)
		}
	}
	keeper := &Keeper{Kube: kube, Informers: func(r schema.GroupVersionResource) cache.SharedIndexInformer { return byResource[r.Resource] }}
	shared.Start(ctx.Done())
	done := make(chan error)
	go func() { done <- keeper.Run(ctx) }()
	announce := func(name, address, ports string) func() {
		ctx, leave := context.WithCancel(ctx)
		left := make(chan struct{})
		go func() {
			defer close(left)
			Announce(ctx, kube, name, name+"-1", `{"region":"east","addresses":["`+address+`"],"servicePorts":"`+ports+`"}`, func() string { return `[{"cluster":"east-a","address":"192.0.2.9:80"}]` })
		}()
		return func() { leave(); <-left }
	}
	state := func() string {
		written, _ := kube.CoreV1().ConfigMaps(v1beta1.FederationNamespace).Get(ctx, v1beta1.LoadBalancersConfigMap, metav1.GetOptions{})
		names := ""
		if written != nil {
			names = strings.Join(slices.Sorted(maps.Keys(written.Data)), ",")
		}
		for _, name := range []string{"web", "other"} {
			i, err := kube.NetworkingV1().Ingresses("shop").Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			names += " " + name
			for _, a := range i.Status.LoadBalancer.Ingress {
				names += " " + a.IP
			}
		}
		s, err := kube.CoreV1().Services("shop").Get(ctx, "db", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		names += " db"
		for _, a := range s.Status.LoadBalancer.Ingress {
			names += fmt.Sprintf(" %s:%d", a.IP, a.Ports[0].Port)
		}
		return names
	}
	becomes := func(want string) {
		t.Helper()
		for began := time.Now(); state() != want; time.Sleep(20 * time.Millisecond) {
			if time.Since(began) > 30*time.Second {
				t.Fatalf("it is %q, want %q", state(), want)
			}
		}
	}
	becomes(" web other db")
	leaveA := announce("a", "192.0.2.1", "5000-5999")
	becomes("a web 192.0.2.1 other db 192.0.2.1:5432")
	leaveB := announce("b", "192.0.2.2", "")
	becomes("a,b web 192.0.2.1 192.0.2.2 other db 192.0.2.1:5432")
	leaveA()
	becomes("b web 192.0.2.2 other db")
	leaveB()
	becomes(" web other db")
	end()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
