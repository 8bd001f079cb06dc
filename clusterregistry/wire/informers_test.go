package wire

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

var (
	replicaSets = appsv1.SchemeGroupVersion.WithResource("replicasets")
	widgets     = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
)

func replicaSet(name string, replicas int32) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Labels: map[string]string{"app": name}, Annotations: map[string]string{"note": "a"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: &replicas},
	}
}

func TestInformersGiveOutUnstructuredObjects(t *testing.T) {
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"namespace": "shop", "name": "w"}, "spec": map[string]any{"new": int64(1)},
	}}
	kube := fake.NewClientset(replicaSet("web", 3), replicaSet("others", 3))
	all := NewInformers(Source{
		Kube: kube, Slim: noManagedFields,
		Dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{widgets: "WidgetList"}, widget),
		Whole:   func(_ string, o metav1.Object) bool { return o.GetName() != "others" },
	})
	sets, custom := all.ForResource(replicaSets), all.ForResource(widgets)
	if all.ForResource(replicaSets) != sets {
		t.Error("asked again, it is another one")
	}
	if err := sets.AddIndexers(cache.Indexers{"replicas": func(obj any) ([]string, error) {
		if n, _, _ := unstructured.NestedInt64(obj.(*unstructured.Unstructured).Object, "spec", "replicas"); n == 3 {
			return []string{"three"}, nil
		}
		return nil, nil
	}}); err != nil {
		t.Fatal(err)
	}
	events := make(chan string, 10)
	replicas := func(obj any) string {
		u := obj.(*unstructured.Unstructured)
		n, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
		return u.GetKind() + " " + u.GetName() + string(rune('0'+n))
	}
	if _, err := sets.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { events <- "add " + replicas(obj) },
		UpdateFunc: func(was, is any) { events <- "update " + replicas(was) + " " + replicas(is) },
		DeleteFunc: func(obj any) { events <- "delete " + replicas(obj) },
	}); err != nil {
		t.Fatal(err)
	}
	all.Start(t.Context().Done())
	if !cache.WaitForCacheSync(t.Context().Done(), sets.HasSynced, custom.HasSynced) {
		t.Fatal("not synced")
	}
	expect := func(want ...string) {
		t.Helper()
		left := map[string]bool{}
		for _, w := range want {
			left[w] = true
		}
		for len(left) > 0 {
			select {
			case got := <-events:
				if !left[got] {
					t.Fatalf("got %q, want one of %q", got, want)
				}
				delete(left, got)
			case <-time.After(10 * time.Second):
				t.Fatalf("waited in vain for %v", left)
			}
		}
	}
	expect("add ReplicaSet web3", "add ReplicaSet others0")
	obj, ok, err := sets.GetStore().GetByKey("shop/web")
	u, _ := obj.(*unstructured.Unstructured)
	if err != nil || !ok || u.GetAnnotations()["note"] != "a" || u.GetAPIVersion() != "apps/v1" || len(u.GetManagedFields()) > 0 {
		t.Errorf("by key: %v, %v, %v", obj, ok, err)
	}
	if again, _, _ := sets.GetIndexer().Get(u); again != obj {
		t.Error("what somebody still has is unpacked again")
	}
	if found, err := sets.GetIndexer().ByIndex("replicas", "three"); err != nil || len(found) != 1 || found[0] != obj {
		t.Errorf("by index: %v, %v", found, err)
	}
	if found, err := sets.GetIndexer().Index("replicas", u); err != nil || len(found) != 1 || found[0] != obj {
		t.Errorf("by the index of an object: %v, %v", found, err)
	}
	if found, err := sets.GetIndexer().ByIndex(cache.NamespaceIndex, "shop"); err != nil || len(found) != 2 {
		t.Errorf("by namespace: %v, %v", found, err)
	}
	others, _, _ := sets.GetStore().GetByKey("shop/others")
	if o := others.(*unstructured.Unstructured); o.GetLabels()["app"] != "others" || len(o.GetAnnotations()) > 0 {
		t.Errorf("of what is not wanted whole: %v", o)
	}
	if all := custom.GetStore().List(); len(all) != 1 || all[0].(*unstructured.Unstructured).GetName() != "w" {
		t.Errorf("custom: %v", all)
	}
	ctx := t.Context()
	if _, err := kube.AppsV1().ReplicaSets("shop").Update(ctx, replicaSet("web", 5), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("update ReplicaSet web3 ReplicaSet web5")
	if err := kube.AppsV1().ReplicaSets("shop").Delete(ctx, "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("delete ReplicaSet web5")
}

func TestWhatIsHeldTellsMuchWithoutBeingUnpacked(t *testing.T) {
	held := func(change func(*appsv1.ReplicaSet)) *packed {
		rs := replicaSet("web", 3)
		rs.UID, rs.Generation, rs.ResourceVersion = "one", 1, "5"
		change(rs)
		obj, err := pack(rs, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
		if err != nil {
			t.Fatal(err)
		}
		return obj.(*packed)
	}
	first := held(func(*appsv1.ReplicaSet) {})
	if whole := first.Unpack(); first.GetNamespace() != whole.GetNamespace() || first.GetName() != whole.GetName() ||
		first.GetUID() != whole.GetUID() || first.GetResourceVersion() != whole.GetResourceVersion() {
		t.Errorf("held as %+v, unpacked %+v", first, whole)
	}
	going := held(func(rs *appsv1.ReplicaSet) {
		rs.Finalizers, rs.DeletionTimestamp = []string{"a", "b"}, &metav1.Time{Time: time.Unix(7, 0)}
	})
	if whole := going.Unpack(); first.GetDeletionTimestamp() != nil || !going.GetDeletionTimestamp().Equal(whole.GetDeletionTimestamp()) ||
		len(first.GetFinalizers()) > 0 || !slices.Equal(going.GetFinalizers(), whole.GetFinalizers()) {
		t.Errorf("held as %+v and %+v, unpacked %+v", first, going, whole)
	}
	for _, c := range []struct {
		name   string
		change func(*appsv1.ReplicaSet)
		want   bool
	}{
		{"status", func(rs *appsv1.ReplicaSet) { rs.ResourceVersion, rs.Status.Replicas = "6", 3 }, true},
		{"generation", func(rs *appsv1.ReplicaSet) { rs.Generation = 2 }, false},
		{"no generation", func(rs *appsv1.ReplicaSet) { rs.Generation = 0 }, false},
		{"another object", func(rs *appsv1.ReplicaSet) { rs.UID = "two" }, false},
		{"deletion", func(rs *appsv1.ReplicaSet) { rs.DeletionTimestamp = &metav1.Time{} }, false},
		{"finalizer", func(rs *appsv1.ReplicaSet) { rs.Finalizers = []string{"a"} }, false},
		{"label", func(rs *appsv1.ReplicaSet) { rs.Labels["app"] = "other" }, false},
		{"annotation", func(rs *appsv1.ReplicaSet) { rs.Annotations["note"] = "b" }, false},
		{"label for annotation", func(rs *appsv1.ReplicaSet) { rs.Labels, rs.Annotations = rs.Annotations, rs.Labels }, false},
	} {
		if got := held(c.change).OnlyStatusDiffers(first); got != c.want {
			t.Errorf("%s: only the status differs: %t, want %t", c.name, got, c.want)
		}
	}
}
