package admission

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/kubernetes/pkg/apis/apps"

	"federation/apiserver/apis/federation/v1beta1"
)

// A request that names a cluster which is not for its namespace is rejected at once.
func TestClustersOfOthersAreRefused(t *testing.T) {
	policy := func(names ...string) *v1beta1.PlacementPolicy {
		return &v1beta1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}, Spec: v1beta1.PlacementPolicySpec{Clusters: &v1beta1.ClusterAffinity{Names: names}}}
	}
	prefers := func(cluster string, weight int64) *v1beta1.ReplicaPreferences {
		return &v1beta1.ReplicaPreferences{Clusters: map[string]v1beta1.ClusterPreferences{cluster: {Weight: weight}, "*": {Weight: 1}}}
	}
	divides := func(cluster string, weight int64) *v1beta1.PlacementPolicy {
		p := policy()
		p.Spec.ReplicaPreferences = prefers(cluster, weight)
		return p
	}
	deployment := func(preferences string) *apps.Deployment {
		return &apps.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: map[string]string{v1beta1.DeploymentPreferencesAnnotation: preferences}}}
	}
	const says = "Forbidden: namespace shop may not use cluster vault: its spec.allowedNamespaces does not name it"
	for name, c := range map[string]struct {
		object, old runtime.Object
		want        string
	}{
		"a policy that names it":         {policy("east-a", "vault"), nil, "spec.clusters.names[1]: " + says},
		"which named it before":          {policy("vault", "east-a"), policy("vault"), ""},
		"which did not name it":          {policy("vault"), policy("east-a"), "spec.clusters.names[0]: " + says},
		"a policy that prefers it":       {divides("vault", 1), nil, "spec.replicaPreferences.clusters[vault]: " + says},
		"a policy that keeps off it":     {divides("vault", 0), nil, ""},
		"a policy for others":            {policy("east-a", "mars"), nil, ""},
		"preferences for it":             {deployment(`{"clusters":{"vault":{"minReplicas":1}}}`), nil, "metadata.annotations[federation.kubernetes.io/deployment-preferences].clusters[vault]: " + says},
		"preferences as before":          {deployment(`{"clusters":{"vault":{"minReplicas":1}}}`), deployment(`{"clusters":{"vault":{"weight":1}}}`), ""},
		"preferences for those it may":   {deployment(`{"clusters":{"shops":{"weight":1},"*":{"weight":1}}}`), nil, ""},
		"preferences that are no longer": {&apps.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}, deployment(`{"clusters":{"vault":{"weight":1}}}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			resource, kind := v1beta1.PoliciesResource, v1beta1.SchemeGroupVersion.WithKind("PlacementPolicy")
			if _, ok := c.object.(*apps.Deployment); ok {
				resource, kind = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
			}
			operation := admission.Update
			if c.old == nil {
				operation = admission.Create
			}
			p := New(policies{}, nil, nil)
			p.Clusters = func() []*v1beta1.Cluster {
				return []*v1beta1.Cluster{
					{ObjectMeta: metav1.ObjectMeta{Name: "east-a"}},
					{ObjectMeta: metav1.ObjectMeta{Name: "vault"}, Spec: v1beta1.ClusterSpec{AllowedNamespaces: []string{"bank"}}},
					{ObjectMeta: metav1.ObjectMeta{Name: "shops"}, Spec: v1beta1.ClusterSpec{AllowedNamespaces: []string{"shop"}}},
				}
			}
			a := admission.NewAttributesRecord(c.object, c.old, kind, "shop", "x", resource, "", operation, nil, false, &user.DefaultInfo{Name: "alice"})
			err := p.Validate(t.Context(), a, nil)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
