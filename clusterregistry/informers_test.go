package clusterregistry

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
)

func TestAKindThatMayNotBeSeenHoldsUpNobody(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	east.set(func() { east.forbids = "/api/v1/configmaps" })
	f.join("east", east, "good")
	first := f.member("east")
	informer := first.Informers.ForResource(configMaps)
	f.eventually("what is forbidden counts as empty", informer.HasSynced)
	if lacks, ok := informer.(interface{ Lacking() bool }); !ok || !lacks.Lacking() {
		t.Error("nobody can know that what is empty is forbidden")
	}
	f.eventually("the operator is told", func() bool {
		events, err := f.core.CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events.Items {
			if e.Reason == "MissingPermissions" && strings.Contains(e.Message, "configmaps") && e.InvolvedObject.Name == "east" {
				return true
			}
		}
		return false
	})
	forbidden := func() []string { return f.cluster("east").Status.InaccessibleResources }
	f.eventually("its Cluster says so", func() bool { return slices.Equal(forbidden(), []string{"configmaps"}) })
	east.set(func() { east.forbids = "" })
	f.eventually("it is taken up anew when it may be seen", func() bool {
		second, err := f.Member("east")
		return err == nil && second != first && len(second.Informers.ForResource(configMaps).GetStore().List()) == 1
	})
	f.eventually("its Cluster says nothing of it any more", func() bool { return len(forbidden()) == 0 })
}

func TestObjectsOfMembersCanBeHadAsTheyAreHeld(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	f.join("east", east, "good")
	informer := f.member("east").Informers.ForResource(configMaps)
	held, ok := informer.(interface {
		Packed() cache.SharedIndexInformer
	})
	if !ok {
		t.Fatal("each event unpacks the object before and after it")
	}
	f.eventually("the object is there", func() bool { return len(held.Packed().GetStore().List()) == 1 })
	if obj, ok := held.Packed().GetStore().List()[0].(interface {
		Unpack() *unstructured.Unstructured
	}); !ok || obj.Unpack().GetName() != "c" {
		t.Errorf("held as %v", obj)
	}
}

func TestACustomKindThatIsNotThereYetIsWaitedFor(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	f.join("east", east, "good")
	m := f.member("east")
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	sets := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	custom, builtIn := m.Informers.ForResource(widgets), m.Informers.ForResource(sets)
	f.eventually("a kind of Kubernetes that the member lacks counts as empty", builtIn.HasSynced)
	f.eventually("it was asked for the custom kind", func() bool { return len(east.seen("/widgets")) > 0 })
	if custom.HasSynced() {
		t.Error("a kind whose definition may come counts as empty")
	}
}

func TestWhatAnAutoscalerOwnsIsMarked(t *testing.T) {
	entry := func(manager, subresource, field string) any {
		return map[string]any{"manager": manager, "subresource": subresource, "fieldsV1": map[string]any{"f:spec": map[string]any{field: map[string]any{}}}}
	}
	for _, test := range []struct {
		name    string
		entries []any
		want    string
	}{
		{"an autoscaler", []any{entry("federation", "", "f:template"), entry("kube-controller-manager", "scale", "f:replicas")}, "kube-controller-manager"},
		{"an autoscaler of k3s", []any{entry("k3s", "scale", "f:replicas")}, "k3s"},
		{"an autoscaler of MicroK8s, after kubectl", []any{entry("kubectl", "scale", "f:replicas"), entry("kubelite", "scale", "f:replicas")}, "kubelite"},
		{"us, by that subresource", []any{entry("federation", "scale", "f:replicas")}, ""},
		{"kubectl's plugin, which is put right", []any{entry("kubectl-scaleall", "scale", "f:replicas")}, ""},
		{"nobody but us", []any{entry("federation", "", "f:replicas")}, ""},
		{"kubectl scale, which is put right", []any{entry("kubectl", "scale", "f:replicas")}, ""},
		{"the controller's status", []any{entry("kube-controller-manager", "status", "f:replicas")}, ""},
		{"none", nil, ""},
	} {
		u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "web", "managedFields": test.entries}}}
		if Slim(u); u.GetAnnotations()[v1beta1.ScaledByAnnotation] != test.want || len(u.GetManagedFields()) > 0 {
			t.Errorf("%s: %v; want %q", test.name, u, test.want)
		}
	}
}
