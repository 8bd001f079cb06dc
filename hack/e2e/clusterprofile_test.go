package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestClusterProfiles: each cluster has a ClusterProfile, which says how it is and how to reach it; who goes that way with a
// credential of the federation gets to the cluster itself.
func TestClusterProfiles(t *testing.T) {
	profiles := s.fed.dyn.Resource(schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: "v1alpha2", Resource: "clusterprofiles"}).Namespace(v1beta1.FederationNamespace)
	healthy := func(want string) func() string {
		return func() string {
			u, err := profiles.Get(context.Background(), "west-a", metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
			for _, c := range conditions {
				if c := c.(map[string]any); c["type"] == "ControlPlaneHealthy" && c["status"] == want {
					return ""
				}
			}
			return fmt.Sprintf("west-a is to be healthy: %s, and has %v", want, conditions)
		}
	}
	eventually(t, 30*time.Second, healthy("True"))
	var list *unstructured.UnstructuredList
	eventually(t, 30*time.Second, func() (wrong string) {
		var err error
		if list, err = profiles.List(context.Background(), metav1.ListOptions{}); err != nil || len(list.Items) != len(s.members) {
			wrong = fmt.Sprintf("%v, %v: not one profile a cluster", list, err)
		}
		return wrong
	})
	t.Cleanup(func() { joinAgain(t, "west-a") })
	joinAgain(t, "west-a", "--allow-proxy") // it lets in who comes through the federation
	for i := range list.Items {
		if p := &list.Items[i]; p.GetName() == "west-a" {
			eventually(t, 30*time.Second, func() string { return reached(t, p) })
		}
	}

	resume := s.stop(t, "west-a")
	eventually(t, 30*time.Second, healthy("False"))
	resume()
	eventually(t, 30*time.Second, healthy("True"))

	// A cluster that leaves takes its profile along.
	clusters := s.fed.dyn.Resource(v1beta1.ClustersResource)
	gone := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": "Cluster", "metadata": map[string]any{"name": "nowhere"},
		"spec": map[string]any{"serverAddressByClientCIDRs": []any{map[string]any{"clientCIDR": "0.0.0.0/0", "serverAddress": "nowhere.example.com"}}},
	}}
	if _, err := clusters.Create(context.Background(), gone, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return clusters.Delete(ctx, "nowhere", metav1.DeleteOptions{}) })
	there := func() string {
		if _, err := profiles.Get(context.Background(), "nowhere", metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		return ""
	}
	eventually(t, 30*time.Second, there)
	if err := clusters.Delete(context.Background(), "nowhere", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, func() string {
		if there() == "" {
			return "the profile of a cluster that has left is still there"
		}
		return ""
	})

	// A profile of another cluster manager is left alone, and one that somebody deletes comes back.
	other := list.Items[0].DeepCopy()
	other.SetName("elsewhere")
	other.SetResourceVersion("")
	other.SetLabels(map[string]string{"x-k8s.io/cluster-manager": "another"})
	other.Object["spec"] = map[string]any{"clusterManager": map[string]any{"name": "another"}}
	if _, err := profiles.Create(context.Background(), other, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return profiles.Delete(ctx, "elsewhere", metav1.DeleteOptions{}) })
	if err := profiles.Delete(context.Background(), "west-a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, healthy("True"))
	if _, err := profiles.Get(context.Background(), "elsewhere", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// reached goes the way that a profile says, and returns what is wrong with where it leads.
func reached(t *testing.T, profile *unstructured.Unstructured) string {
	t.Helper()
	ways, _, _ := unstructured.NestedSlice(profile.Object, "status", "accessProviders")
	if len(ways) != 1 {
		t.Fatalf("%s: ways %v", profile.GetName(), ways)
	}
	way := ways[0].(map[string]any)["cluster"].(map[string]any)
	ca, err := base64.StdEncoding.DecodeString(way["certificate-authority-data"].(string))
	if err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(s.fed.config)
	config.Host, config.CAFile, config.CAData = way["server"].(string), "", ca
	there, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	is, err := there.CoreV1().Namespaces().Get(context.Background(), metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return fmt.Sprintf("%s, by %s: %v", profile.GetName(), config.Host, err)
	}
	want, err := s.members[profile.GetName()].client.CoreV1().Namespaces().Get(context.Background(), metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil || want.UID != is.UID || profile.GetLabels()["multicluster.x-k8s.io/inventory-member-id"] != string(is.UID) {
		return fmt.Sprintf("%s: its way leads to %s, and its label names %s; it is %s, %v", profile.GetName(), is.UID, profile.GetLabels()["multicluster.x-k8s.io/inventory-member-id"], want.UID, err)
	}
	return ""
}
