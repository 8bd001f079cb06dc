package main

import (
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"federation/clusterregistry"
)

// A custom kind that a member forbids is never served there. Policies say so, by the Cluster's status.
func TestAForbiddenCustomKindIsReported(t *testing.T) {
	gizmos := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gizmos"}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{gizmos: "GizmoList"})
	var answer error
	client.PrependReactor("list", "gizmos", func(clienttesting.Action) (bool, runtime.Object, error) { return answer != nil, nil, answer })
	m := &clusterregistry.Member{Dynamic: client}
	for _, c := range []struct {
		answer    error
		served    bool
		forbidden []string
	}{
		{apierrors.NewNotFound(gizmos.GroupResource(), ""), false, nil},
		{apierrors.NewForbidden(gizmos.GroupResource(), "", nil), false, []string{"gizmos.example.com"}},
		{errors.New("connection refused"), false, []string{"gizmos.example.com"}},
		{nil, true, nil},
	} {
		answer = c.answer
		if served := (once{engager{}, gizmos}).served(t.Context(), m); served != c.served || !slices.Equal(m.Forbidden(), c.forbidden) {
			t.Errorf("%v: served %v, forbidden %q", c.answer, served, m.Forbidden())
		}
	}
}
