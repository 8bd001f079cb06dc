package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestHelm installs a chart with a released Helm, and waits, upgrades, rolls back and uninstalls, as in one cluster.
func TestHelm(t *testing.T) {
	helm := filepath.Join(s.root, "_output", "bin", "helm")
	if _, err := os.Stat(helm); err != nil {
		t.Skip("Helm is not built: `make e2e-tools` builds it and tests with it")
	}
	const release = "shop"
	run := func(args ...string) time.Duration {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, helm, append(args, "--namespace", release, "--wait", "--timeout", "60s")...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(s.dir, "federation", "admin.kubeconfig"), "HELM_CACHE_HOME="+t.TempDir(), "HELM_CONFIG_HOME="+t.TempDir(), "HELM_DATA_HOME="+t.TempDir())
		began := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return time.Since(began)
	}
	images := func(cluster string) (images []string) {
		deployments, err := s.members[cluster].client.AppsV1().Deployments(release).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range deployments.Items {
			images = append(images, d.Spec.Template.Spec.Containers[0].Image)
		}
		return images
	}
	t.Cleanup(func() {
		_ = s.fed.client.CoreV1().Namespaces().Delete(context.Background(), release, metav1.DeleteOptions{})
	})
	installed := run("install", release, "testdata/chart", "--create-namespace")
	ownClusterIPs(t, release, "public")
	upgraded := run("upgrade", release, "testdata/chart", "--set", "image=web:2")
	for name := range s.members {
		if got := strings.Join(images(name), " "); got != "web:2" {
			t.Errorf("Helm says that the upgrade is done, and %s has %q", name, got)
		}
	}
	rolledBack := run("rollback", release, "1")
	for name := range s.members {
		if got := strings.Join(images(name), " "); got != "web:1" {
			t.Errorf("Helm says that the rollback is done, and %s has %q", name, got)
		}
	}
	run("uninstall", release)
	for name, m := range s.members {
		eventually(t, 30*time.Second, func() string {
			list, err := m.client.AppsV1().Deployments(release).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(list.Items) > 0 {
				return name + " still has Deployments of the release"
			}
			return ""
		})
	}
	t.Logf("install --wait %s, upgrade --wait %s, rollback --wait %s", installed.Round(100*time.Millisecond), upgraded.Round(100*time.Millisecond), rolledBack.Round(100*time.Millisecond))
}

// ownClusterIPs: the Service has a cluster IP at the federation, and each member's copy one of its own.
func ownClusterIPs(t *testing.T, namespace, name string) {
	t.Helper()
	service, err := s.fed.client.CoreV1().Services(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || service.Spec.ClusterIP == "" {
		t.Errorf("the federated Service has the cluster IP %q (%v)", service.Spec.ClusterIP, err)
	}
	for member, m := range s.members {
		own, err := m.client.CoreV1().Services(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || own.Spec.ClusterIP == "" || own.Spec.ClusterIP == service.Spec.ClusterIP {
			t.Errorf("%s: cluster IP %q of the copy (%v), at the federation %q", member, own.Spec.ClusterIP, err, service.Spec.ClusterIP)
		}
	}
}
