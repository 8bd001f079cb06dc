package fleettest

import (
	"reflect"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestLeasesAreReadAsByReflection: what readLease reads of a Lease is what the converter of Kubernetes does, and it leaves the rest to that.
func TestLeasesAreReadAsByReflection(t *testing.T) {
	now := metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 678000, time.UTC))
	whole := coordinationv1.Lease{
		TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", Namespace: "b", UID: "c", ResourceVersion: "4", CreationTimestamp: metav1.NewTime(now.Truncate(time.Second)),
			Labels: map[string]string{"x": "y"}, Annotations: map[string]string{"z": ""},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: new("us"), LeaseDurationSeconds: new(int32(7)), AcquireTime: &now, RenewTime: &now, LeaseTransitions: new(int32(3))},
	}
	renewedOnly, other := *whole.DeepCopy(), *whole.DeepCopy()
	renewedOnly.Labels, renewedOnly.Spec = nil, coordinationv1.LeaseSpec{RenewTime: &now}
	other.Finalizers = []string{"f"}
	for name, c := range map[string]struct {
		lease coordinationv1.Lease
		reads bool
	}{"whole": {whole, true}, "renewed": {renewedOnly, true}, "with a finalizer": {other, false}} {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&c.lease)
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{Object: object}
		if reads := readLease(u, &coordinationv1.Lease{}); reads != c.reads {
			t.Errorf("%s: it is read without reflection: %t", name, reads)
		}
		want := &coordinationv1.Lease{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, want); err != nil {
			t.Fatal(err)
		}
		if got, err := toLease(u, nil); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\n%v, want\n%v", name, err, got, want)
		}
	}
	for field, value := range map[string]any{"renewTime": "yesterday", "leaseDurationSeconds": "7", "strategy": "OldestEmulationVersion"} {
		object, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(&whole)
		object["spec"].(map[string]any)[field] = value
		if readLease(&unstructured.Unstructured{Object: object}, &coordinationv1.Lease{}) {
			t.Errorf("a Lease with %s %q is read without reflection", field, value)
		}
	}
}
