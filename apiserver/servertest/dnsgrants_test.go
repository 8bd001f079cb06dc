package servertest

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// Grants of DNS names are stored for the whole federation, validated, and shown as a table.
func TestDNSNameGrantsAreServed(t *testing.T) {
	client := in("", v1beta1.DNSNameGrantsResource)
	grant := func(suffix string, namespaces ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "federation/v1beta1", "kind": "DNSNameGrant",
			"metadata": map[string]any{"name": "login"}, "spec": map[string]any{"suffix": suffix, "namespaces": namespaces}}}
	}
	if _, err := client.Create(t.Context(), grant("*.example.com"), metav1.CreateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.suffix") {
		t.Errorf("error %v", err)
	}
	g, err := client.Create(t.Context(), grant("login.example.com", "shop", "pay"), metav1.CreateOptions{})
	if err != nil || g.GetGeneration() != 1 {
		t.Fatalf("%v, %v", g, err)
	}
	if row := firstRow(t, "/apis/federation/v1beta1/dnsnamegrants"); !strings.HasPrefix(row, "login login.example.com shop,pay ") {
		t.Errorf("the table shows %q", row)
	}
	g.Object["spec"] = map[string]any{"suffix": "login.example.com"}
	if g, err = client.Update(t.Context(), g, metav1.UpdateOptions{}); err != nil || g.GetGeneration() != 2 {
		t.Errorf("%v, %v", g, err)
	}
	if err := client.Delete(t.Context(), "login", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}
