package memapi

import (
	"fmt"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
)

// TestTransport has a typed client of client-go do all that it can, and looks at what a watch of one name sends.
func TestTransport(t *testing.T) {
	api := New(Options{Resources: []Resource{{GroupVersionResource: coordinationv1.SchemeGroupVersion.WithResource("leases"), Kind: "Lease", Namespaced: true}}})
	client, err := coordinationclient.NewForConfig(&rest.Config{
		Host: "http://memory", ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}, Transport: Transport{api.Client("test", nil)},
	})
	if err != nil {
		t.Fatal(err)
	}
	leases := client.Leases("home")
	one := metav1.ListOptions{FieldSelector: "metadata.name=a"}
	w, err := leases.Watch(t.Context(), one)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for _, name := range []string{"b", "a"} {
		if _, err := leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	patched, err := leases.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"holderIdentity":"me"}}`), metav1.PatchOptions{FieldManager: "patches"})
	if err != nil || *patched.Spec.HolderIdentity != "me" {
		t.Fatalf("patched: %v, %v", patched, err)
	}
	old := patched.DeepCopy()
	patched.Spec.HolderIdentity = nil
	if _, err := leases.Update(t.Context(), patched, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := leases.Update(t.Context(), old, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update of an older version: %v", err)
	}
	if list, err := leases.List(t.Context(), one); err != nil || len(list.Items) != 1 || list.Items[0].Name != "a" {
		t.Errorf("the list of one name: %v, %v", list, err)
	}
	if err := leases.Delete(t.Context(), "a", metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("another")}); !apierrors.IsConflict(err) {
		t.Errorf("a delete of another object: %v", err)
	}
	if err := leases.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := leases.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("what is deleted: %v", err)
	}
	for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Modified, watch.Deleted} {
		e := <-w.ResultChan()
		if got, ok := e.Object.(*coordinationv1.Lease); e.Type != want || !ok || got.Name != "a" {
			t.Errorf("the watch: %s, want %s of a", fmt.Sprint(e), want)
		}
	}
}
