package main

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"federation/controllers/lbprovider/plan"
)

// TestCloudGivesTheAddressesOfTheProvider: Services have the same addresses whether nodes are simulated or real, until the pools end, after a
// restart, and when one has become free again.
func TestCloudGivesTheAddressesOfTheProvider(t *testing.T) {
	pools, err := parsePools([]string{"192.0.2.0/29", "198.18.0.0/30"}) // six and two
	if err != nil {
		t.Fatal(err)
	}
	provider := &plan.Settings{Class: plan.Class, Default: true, Pools: pools}
	standIn := &cloud{pool: newPool(pools)}
	var services []*corev1.Service
	ensure := func(what string, s *corev1.Service) {
		t.Helper()
		want := provider.Allocate(services)[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}]
		got, err := standIn.EnsureLoadBalancer(t.Context(), "", s, nil)
		if err != nil {
			if got = (&corev1.LoadBalancerStatus{}); want.Reason != plan.ReasonExhausted {
				t.Errorf("%s: %s: the cloud says %v, the provider %v", what, s.Name, err, want)
			}
		}
		s.Status.LoadBalancer = *got
		if fmt.Sprint(plan.Recorded(s)) != fmt.Sprint(want.Addresses) {
			t.Errorf("%s: %s: the cloud gives %v, the provider %v", what, s.Name, plan.Recorded(s), want)
		}
	}
	for i := range 9 {
		name := fmt.Sprintf("s%d", i)
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(time.Unix(int64(i), 0))},
			Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, Ports: []corev1.ServicePort{{Port: 80, NodePort: 30080}}}}
		services = append(services, s)
		ensure("made one after the other", s)
	}
	if last := plan.Recorded(services[7]); fmt.Sprint(last) != "[198.18.0.2]" {
		t.Errorf("the eighth has %v", last)
	}
	var objects []runtime.Object
	for i := range services {
		objects = append(objects, services[len(services)-1-i])
	}
	standIn = &cloud{pool: newPool(pools)}
	if err := standIn.remember(t.Context(), fake.NewClientset(objects...)); err != nil {
		t.Fatal(err)
	}
	for _, s := range services {
		ensure("after a restart", s)
	}
	if err := standIn.EnsureLoadBalancerDeleted(t.Context(), "", services[3]); err != nil {
		t.Fatal(err)
	}
	services = append(services[:3:3], services[4:]...)
	ensure("one is free again", services[7])
	if last := plan.Recorded(services[7]); fmt.Sprint(last) != "[192.0.2.4]" {
		t.Errorf("the ninth has %v", last)
	}
}
