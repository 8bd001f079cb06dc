package cluster

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"federation/apiserver/apis/federation/v1beta1"
)

func TestHowAClusterIsUsed(t *testing.T) {
	cordoned := []corev1.Taint{{Key: v1beta1.TaintUnschedulable, Effect: corev1.TaintEffectNoSchedule}, {Key: "maintenance", Effect: corev1.TaintEffectNoSchedule}}
	draining := append(slices.Clone(cordoned), corev1.Taint{Key: v1beta1.TaintDrain, Effect: corev1.TaintEffectNoExecute})
	for want, c := range map[string]struct {
		failover *v1beta1.ClusterFailover
		taints   []corev1.Taint
		drain    v1beta1.Drain
	}{
		"Serving":                       {},
		"FailoverSuspended":             {failover: &v1beta1.ClusterFailover{Phase: v1beta1.PhaseFailoverSuspended}},
		"FailedOver":                    {failover: &v1beta1.ClusterFailover{Phase: v1beta1.PhaseFailedOver}},
		"FailingBack 10%":               {failover: &v1beta1.ClusterFailover{Phase: v1beta1.PhaseFailingBack, Percent: 10}},
		"Serving,SchedulingDisabled":    {taints: cordoned},
		"FailedOver,SchedulingDisabled": {failover: &v1beta1.ClusterFailover{Phase: v1beta1.PhaseFailedOver}, taints: cordoned},
		"Serving,Drained":               {taints: draining},
		"Serving,Draining":              {taints: draining, drain: v1beta1.Drain{Cordoned: true}},
		"FailoverSuspended,Draining":    {failover: &v1beta1.ClusterFailover{Phase: v1beta1.PhaseFailoverSuspended}, taints: draining[1:]},
		"FailoverSuspended,Drained":     {failover: &v1beta1.ClusterFailover{Phase: v1beta1.PhaseFailoverSuspended}, taints: draining, drain: v1beta1.Drain{Cordoned: true, Empty: true}},
	} {
		object := &v1beta1.Cluster{Spec: v1beta1.ClusterSpec{Taints: c.taints}, Status: v1beta1.ClusterStatus{Failover: c.failover}}
		object.Annotations = map[string]string{v1beta1.DrainAnnotation: c.drain.String()}
		if got := statusText(object); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestRoomIsShown(t *testing.T) {
	for want, q := range map[string][2]string{"0/4": {"4", "4"}, "6.5/8": {"8", "1500m"}, "2999/3000": {"3k", "1"}, "-0.5/1": {"1", "1500m"}} {
		object := &v1beta1.Cluster{Status: v1beta1.ClusterStatus{Capacity: &v1beta1.ClusterCapacity{
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(q[0])},
			Requested:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(q[1])},
		}}}
		if got := freeOf(object, corev1.ResourceCPU, cores); got != want {
			t.Errorf("%v: %q, want %q", q, got, want)
		}
	}
	if got := gibibytes(resource.MustParse("3Ti")); got != "3072Gi" {
		t.Errorf("3Ti is shown as %q", got)
	}
}

// The address is one for both families of clients; a cluster whose agent connects has none.
func TestAddressIsShown(t *testing.T) {
	both := v1beta1.ClusterSpec{ServerAddressByClientCIDRs: []v1beta1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: "a:6443"}, {ClientCIDR: "::/0", ServerAddress: "a:6443"}}}
	for want, spec := range map[string]v1beta1.ClusterSpec{"a:6443": both, "<agent>": {Connection: v1beta1.ConnectionPull}} {
		if cells := row(&v1beta1.Cluster{Spec: spec}); cells[len(cells)-1] != want {
			t.Errorf("address %v, want %q", cells[len(cells)-1], want)
		}
	}
}
