package admission

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/apis/apps"

	"federation/apiserver/apis/federation/v1beta1"
)

// kubectl replace knows nothing of the placement: it must not be lost by it, or what runs would move.
func TestAReplacedObjectKeepsItsPlacement(t *testing.T) {
	const decided = `{"clusters":{"east-a":3}}`
	for name, c := range map[string]struct {
		annotations map[string]string
		subresource string
		want        string
	}{
		"replaced":                 {nil, "", decided},
		"replaced with another":    {map[string]string{v1beta1.PlacementAnnotation: "{}"}, "", "{}"},
		"emptied":                  {map[string]string{v1beta1.PlacementAnnotation: ""}, "", ""},
		"taken off by the reports": {nil, "status", ""},
	} {
		t.Run(name, func(t *testing.T) {
			old := &apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", Annotations: map[string]string{v1beta1.PlacementAnnotation: decided}}}
			object := &apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", Annotations: c.annotations}}
			if got := admit(t, object, old, c.subresource).Annotations[v1beta1.PlacementAnnotation]; got != c.want {
				t.Errorf("placement %q, want %q", got, c.want)
			}
		})
	}
}

func admit(t *testing.T, object, old *apps.ReplicaSet, subresource string) *apps.ReplicaSet {
	t.Helper()
	a := admission.NewAttributesRecord(object, old, apps.Kind("ReplicaSet").WithVersion("v1"), "shop", "web",
		schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}, subresource, admission.Update, &metav1.UpdateOptions{}, false, nil)
	if err := New(policies{}, nil, nil).Admit(t.Context(), a, nil); err != nil {
		t.Fatal(err)
	}
	return a.GetObject().(*apps.ReplicaSet)
}
