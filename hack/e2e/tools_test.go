package e2e

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestHelm installs a chart with each released Helm that is built, and waits, upgrades, fails to upgrade, rolls back and uninstalls, as in one cluster.
func TestHelm(t *testing.T) {
	built, err := filepath.Glob(filepath.Join(s.root, "_output", "bin", "helm-v*"))
	if err != nil || len(built) == 0 {
		t.Skip("Helm is not built: `make e2e-tools` builds it and tests with it")
	}
	for _, binary := range built {
		version := strings.TrimPrefix(filepath.Base(binary), "helm-")
		t.Run(version, func(t *testing.T) {
			helm{binary, "shop-" + strings.ReplaceAll(version, ".", "-"), t.TempDir()}.test(t)
		})
	}
}

// helm is a Helm, and the namespace in which it installs the chart.
type helm struct{ binary, namespace, home string }

// run runs a command of Helm with --wait.
func (h helm) run(t *testing.T, args ...string) (said string, took time.Duration, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.binary, append(args, "--namespace", h.namespace, "--wait")...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(s.dir, "federation", "admin.kubeconfig"), "HELM_CACHE_HOME="+h.home, "HELM_CONFIG_HOME="+h.home, "HELM_DATA_HOME="+h.home)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	return string(out), time.Since(began).Round(100 * time.Millisecond), err
}

func (h helm) must(t *testing.T, args ...string) time.Duration {
	t.Helper()
	said, took, err := h.run(t, args...)
	if err != nil {
		t.Fatalf("helm %s: %v after %s\n%s", strings.Join(args, " "), err, took, said)
	}
	return took
}

func (h helm) test(t *testing.T) {
	const release = "shop"
	t.Cleanup(func() {
		_ = s.fed.client.CoreV1().Namespaces().Delete(context.Background(), h.namespace, metav1.DeleteOptions{})
	})
	installed := h.must(t, "install", release, "testdata/chart", "--create-namespace", "--wait-for-jobs", "--timeout", "180s")
	after := time.Since(h.lastReady(t)).Round(100 * time.Millisecond)
	atMost(t, "install --wait ends after the last pod is ready by", after, 6*time.Second) // members write whole seconds
	h.ranFully(t)
	ownClusterIPs(t, h.namespace, "public")
	upgraded := h.must(t, "upgrade", release, "testdata/chart", "--set", "image=web:2", "--timeout", "180s")
	h.runsImage(t, "web:2")
	// A StatefulSet whose pods cannot start stays so in any cluster, until somebody deletes these: only the Deployment gets the image.
	said, failed, err := h.run(t, "upgrade", release, "testdata/chart", "--set", "image=missing,db=web:2", "--timeout", "40s")
	if err == nil {
		t.Errorf("an upgrade to an image that cannot be pulled succeeds:\n%s", said)
	}
	rolledBack := h.must(t, "rollback", release, "1", "--timeout", "180s")
	h.runsImage(t, "web:1")
	h.kubectl(t)
	uninstalled := h.must(t, "uninstall", release, "--timeout", "180s")
	h.leavesNothing(t)
	t.Logf("install --wait %s, which is %s after the last pod was ready; upgrade %s; an upgrade that fails %s (%s); rollback %s; uninstall %s",
		installed, after, upgraded, failed, strings.TrimSpace(said[max(0, len(said)-160):]), rolledBack, uninstalled)
}

// kubectl rolls back what Helm has installed, and describes it.
func (h helm) kubectl(t *testing.T) {
	t.Helper()
	is := func(part string, args ...string) {
		t.Helper()
		if out, err := s.kubectl(t, "", append(args, "-n", h.namespace)...); err != nil || !strings.Contains(out, part) {
			t.Errorf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	for _, workload := range []string{"deployment/web", "statefulset/db"} {
		is("REVISION", "rollout", "history", workload)
		is("rolled back", "rollout", "undo", workload, "--to-revision=2")
		is("", "rollout", "status", workload, "--timeout=120s")
	}
	h.runsImage(t, "web:2")
	is("NewReplicaSet:   web-", "describe", "deployment", "web")
	for _, kind := range []string{"statefulsets", "daemonsets", "jobs", "replicasets", "services", "ingresses", "horizontalpodautoscalers"} {
		is("Name:", "describe", kind)
	}
}

// lastReady is when the last pod in any member became ready, or was done.
func (h helm) lastReady(t *testing.T) (last time.Time) {
	t.Helper()
	for name, m := range s.members {
		pods, err := m.client.CoreV1().Pods(h.namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(name, err)
		}
		for _, pod := range pods.Items {
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodReady && c.LastTransitionTime.After(last) {
					last = c.LastTransitionTime.Time
				}
			}
		}
	}
	return last
}

// ranFully: what Helm waited for is so in all members.
func (h helm) ranFully(t *testing.T) {
	t.Helper()
	pods := map[string]int{}
	for name, m := range s.members {
		list, err := m.client.CoreV1().Pods(h.namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(name, err)
		}
		for _, pod := range list.Items {
			pods[cmp.Or(pod.Labels["app"], "once")+" "+string(pod.Status.Phase)]++
		}
	}
	want := map[string]int{"web Running": 6, "db Running": 3, "log Running": 9, "once Succeeded": 3}
	if !maps.Equal(pods, want) {
		t.Errorf("Helm says that the installation is done, and members have %v, want %v", pods, want)
	}
}

// runsImage: each member that has pods of the workloads runs them with the image.
func (h helm) runsImage(t *testing.T, image string) {
	t.Helper()
	for name, m := range s.members {
		pods, err := m.client.CoreV1().Pods(h.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app in (web, db)"})
		if err != nil {
			t.Fatal(name, err)
		}
		for _, pod := range pods.Items {
			if got := pod.Spec.Containers[0].Image; got != image && pod.DeletionTimestamp == nil {
				t.Errorf("%s is said to be done, and pod %s in %s has %s", image, pod.Name, name, got)
			}
		}
	}
}

// leavesNothing: after an uninstallation neither the members nor the federation have anything of the release.
func (h helm) leavesNothing(t *testing.T) {
	t.Helper()
	resources := []schema.GroupVersionResource{
		appsv1.SchemeGroupVersion.WithResource("deployments"), appsv1.SchemeGroupVersion.WithResource("statefulsets"), appsv1.SchemeGroupVersion.WithResource("daemonsets"),
		appsv1.SchemeGroupVersion.WithResource("replicasets"), appsv1.SchemeGroupVersion.WithResource("controllerrevisions"), batchv1.SchemeGroupVersion.WithResource("jobs"),
		autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers"), networkingv1.SchemeGroupVersion.WithResource("ingresses"),
		corev1.SchemeGroupVersion.WithResource("services"), corev1.SchemeGroupVersion.WithResource("pods"),
	}
	all := maps.Clone(s.members)
	all["the federation"] = s.fed
	eventually(t, 30*time.Second, func() string {
		var left []string
		for name, m := range all {
			for _, r := range resources {
				list, err := m.dyn.Resource(r).Namespace(h.namespace).List(t.Context(), metav1.ListOptions{})
				if err != nil {
					left = append(left, err.Error())
					continue
				}
				for _, item := range list.Items {
					left = append(left, fmt.Sprintf("%s: %s %s", name, r.Resource, item.GetName()))
				}
			}
		}
		slices.Sort(left)
		return strings.Join(left, "\n")
	})
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
