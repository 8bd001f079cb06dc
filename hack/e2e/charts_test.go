package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestCharts: a member's API server takes all objects of the charts as they are, field by field, and its Pod Security finds nothing against the
// control plane and the load balancer in a namespace of the level restricted, nor against the agents of a member in one of the level privileged.
func TestCharts(t *testing.T) {
	built, _ := filepath.Glob(filepath.Join(s.root, "_output", "bin", "helm-v*"))
	if len(built) == 0 {
		t.Skip("Helm is not built: hack/build-helm.sh builds it")
	}
	namespaces := map[string]string{"federation": "charts", "federation-lb": "charts", "federation-member": "federation-system"}
	restricted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "charts", Labels: map[string]string{
		"pod-security.kubernetes.io/warn": "restricted", "pod-security.kubernetes.io/enforce": "restricted"}}}
	member := s.members["east-a"].client.CoreV1().Namespaces()
	if _, err := member.Create(t.Context(), restricted, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = member.Delete(context.Background(), restricted.Name, metav1.DeleteOptions{}) })
	for chart, namespace := range namespaces {
		files, err := filepath.Glob(filepath.Join(s.root, "hack/charts/testdata", chart, "*.yaml"))
		if err != nil || len(files) < 2 {
			t.Fatal(files, err)
		}
		for _, helm := range built {
			for _, values := range files {
				args := []string{"template", "federation", filepath.Join(s.root, "hack/charts", chart), "--kube-version", "1.36.0", "-n", namespace, "-f", values}
				if namespace == restricted.Name {
					args = append(args, "--set", "podMonitor.enabled=false") // nobody serves that kind here
				}
				objects, err := exec.Command(helm, args...).Output()
				if err != nil {
					t.Fatalf("%s: %v", strings.Join(args, " "), err)
				}
				if said, err := applyDryRun(t, objects); err != nil || strings.Contains(said, "Warning") {
					t.Errorf("%s of %s: %v: %s", filepath.Base(values), filepath.Base(helm), err, said)
				}
			}
		}
	}
	// It is the API server that judges: what it does not know, and what the level forbids, is said.
	bad := []byte("{apiVersion: v1, kind: Pod, metadata: {name: bad, namespace: charts}, spec: {hostNetwork: true, containers: [{name: a, image: a, imagePul: x}]}}")
	if said, err := applyDryRun(t, bad); err == nil {
		t.Errorf("a Pod with an unknown field, on the node's network, is taken: %s", said)
	}
}

// applyDryRun has east-a's API server judge objects.
func applyDryRun(t *testing.T, objects []byte) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, objects, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("kubectl", fmt.Sprintf("--kubeconfig=%s", filepath.Join(s.dir, "members/east-a/kubeconfig")),
		"apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", file).CombinedOutput()
	return string(out), err
}
