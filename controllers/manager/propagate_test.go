package manager

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestAForbiddenCustomKindIsReported checks that a custom kind that a member forbids is never served there. Policies say so, by the Cluster's status.
func TestAForbiddenCustomKindIsReported(t *testing.T) {
	gizmos := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gizmos"}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{gizmos: "GizmoList"})
	var answer error
	client.PrependReactor("list", "gizmos", func(clienttesting.Action) (bool, runtime.Object, error) { return answer != nil, nil, answer })
	forbidden := map[string]bool{}
	m := Member{Client: client, SetForbidden: func(resource string, is bool) { forbidden[resource] = is }}
	for _, c := range []struct {
		answer    error
		served    bool
		forbidden bool
	}{
		{apierrors.NewNotFound(gizmos.GroupResource(), ""), false, false},
		{apierrors.NewForbidden(gizmos.GroupResource(), "", nil), false, true},
		{errors.New("connection refused"), false, true},
		{nil, true, false},
	} {
		answer = c.answer
		if served := isServed(t.Context(), m, gizmos); served != c.served || forbidden["gizmos.example.com"] != c.forbidden {
			t.Errorf("%v: served %v, forbidden %v", c.answer, served, forbidden)
		}
	}
}
