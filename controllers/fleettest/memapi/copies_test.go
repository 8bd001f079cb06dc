package memapi

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a client gets is its own: to change it, or to take its managed fields off, changes nothing that is stored. Changes counts each change, and does not go
// back with the version.
func TestCopies(t *testing.T) {
	api := newTestAPI()
	c := api.Client("tester", nil)
	create(place{namespacesResource, ""}, "{apiVersion: v1, kind: Namespace, metadata: {name: kube-system}}").do(t.Context(), c, "")
	empty := api.Snapshot()
	if _, err := apply(files, "tester", "{apiVersion: v1, kind: ConfigMap, metadata: {name: one, labels: {a: x}}, data: {k: v}}").do(t.Context(), c, ""); err != nil {
		t.Fatal(err)
	}
	stored := api.Get(configMaps, files.namespace, "one")
	before := stored.DeepCopy()
	got, err := c.Resource(configMaps).Namespace(files.namespace).Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil || !reflect.DeepEqual(got, before) || len(got.GetManagedFields()) == 0 {
		t.Fatalf("%v %v", got, err)
	}
	got.SetManagedFields(nil)
	got.SetLabels(map[string]string{"a": "y"})
	got.Object["data"].(map[string]any)["k"] = "w"
	if !reflect.DeepEqual(stored, before) {
		t.Errorf("%v is stored, and was %v", stored, before)
	}
	version, changes := api.Version(), api.Changes()
	api.Restore(empty)
	if api.Version() >= version || api.Changes() <= changes {
		t.Errorf("by the restore the version went from %d to %d, and the changes from %d to %d", version, api.Version(), changes, api.Changes())
	}
}
