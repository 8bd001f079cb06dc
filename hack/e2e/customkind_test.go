package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const gizmos = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gizmos.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: gizmos, singular: gizmo, kind: Gizmo}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

const gizmoPolicy = `apiVersion: federation/v1beta1
kind: PlacementPolicy
metadata: {name: gizmos, namespace: default}
spec:
  resourceSelectors: [{apiVersion: example.com/v1, kind: Gizmo}]
`

// TestACustomKindIsMadeAgain: a definition is deleted and made again, as by an operator that is installed once more. Its
// objects get to members as before, and the process, which is API and DNS, has not been restarted.
func TestACustomKindIsMadeAgain(t *testing.T) {
	const member = "east-a"
	t.Cleanup(func() { joinAgain(t, member) })
	if out, err := joinMember(t, member, "--custom-kinds", "gizmos.example.com"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	pid := func() string {
		text, err := os.ReadFile(filepath.Join(s.dir, "federation.pid"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	before := pid()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		_, _ = s.kubectlIn(ctx, "", "delete", "crd", "gizmos.example.com", "--ignore-not-found")
		_, _ = s.kubectlIn(ctx, "", "delete", "placementpolicy", "gizmos", "--ignore-not-found")
	})
	if out, err := s.kubectl(t, gizmoPolicy, "apply", "-f", "-"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	copies := s.members[member].dyn.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gizmos"}).Namespace("default")
	for round := range 3 {
		if out, err := s.kubectl(t, gizmos, "apply", "-f", "-"); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		name := fmt.Sprintf("round-%d", round)
		eventually(t, 30*time.Second, func() string {
			out, err := s.kubectl(t, "apiVersion: example.com/v1\nkind: Gizmo\nmetadata: {name: "+name+", namespace: default}\n", "apply", "-f", "-")
			if err != nil {
				return out
			}
			return ""
		})
		eventually(t, 90*time.Second, func() string {
			if _, err := copies.Get(t.Context(), name, metav1.GetOptions{}); err != nil {
				return err.Error()
			}
			return ""
		})
		if out, err := s.kubectl(t, "", "delete", "crd", "gizmos.example.com"); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if pid() != before {
		t.Errorf("the process %s was %s", pid(), before)
	}
	if out, err := s.kubectl(t, "", "get", "--raw", "/readyz?verbose"); err != nil || !strings.Contains(out, "federation-controllers ok") {
		t.Errorf("%v: %s", err, out)
	}
}
