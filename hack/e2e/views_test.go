package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

const viewed = `---
{apiVersion: apps/v1, kind: %s, metadata: {name: viewed, namespace: %s}, spec: {%s selector: {matchLabels: {app: viewed}},
 template: {metadata: {labels: {app: viewed}}, spec: {containers: [{name: c, image: "i:1"}]}}}}`

// kubectl's own verbs, with real members: pods of all of them by kubectl get, describe of what selects pods, and a member that is dead.
func TestKubectlShowsPodsOfMembers(t *testing.T) {
	ns := "views"
	run := func(stdin string, args ...string) string {
		t.Helper()
		out, err := s.kubectl(t, stdin, args...)
		if err != nil {
			t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return out
	}
	run("", "create", "namespace", ns)
	t.Cleanup(func() { _, _ = s.kubectl(t, "", "delete", "namespace", ns, "--wait=false") })
	run(fmt.Sprintf(viewed, "Deployment", ns, "replicas: 6,"), "apply", "-f", "-")
	pods := func() (names []string) {
		list, err := s.fed.client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "app=viewed"})
		if err != nil {
			t.Fatal(err)
		}
		deployment, err := s.fed.client.AppsV1().Deployments(ns).Get(t.Context(), "viewed", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list.Items {
			names = append(names, p.Name)
			if len(p.OwnerReferences) != 1 || p.OwnerReferences[0].UID != deployment.UID {
				t.Errorf("%s is owned by %v", p.Name, p.OwnerReferences)
			}
		}
		return names
	}
	eventually(t, time.Minute, func() string {
		if names := pods(); len(names) != 6 {
			return fmt.Sprintf("the federation shows %q", names)
		}
		return ""
	})
	var inMembers []string
	for name, m := range s.members {
		list, err := m.client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list.Items {
			inMembers = append(inMembers, p.Name+"."+name)
		}
	}
	slices.Sort(inMembers)
	if names := pods(); !slices.Equal(names, inMembers) {
		t.Errorf("the federation shows %q, members have %q", names, inMembers)
	}
	out := run("", "get", "pods", "-n", ns, "-o", "wide", "-l", v1beta1.ClusterLabel+"=east-a")
	if !strings.Contains(out, "CLUSTER") || strings.Contains(out, ".east-b") || !strings.Contains(out, ".east-a") {
		t.Errorf("get pods:\n%s", out)
	}
	if out := run("", "describe", "pod", "-n", ns, inMembers[0]); !strings.Contains(out, "Controlled By:  Deployment/viewed") {
		t.Errorf("describe pod:\n%s", out)
	}
	for _, kind := range []string{"ReplicaSet", "StatefulSet", "DaemonSet"} {
		replicas := map[bool]string{true: "replicas: 1,"}[kind != "DaemonSet"]
		run(fmt.Sprintf(viewed, kind, ns, replicas), "apply", "-f", "-")
		if out := run("", "describe", strings.ToLower(kind), "viewed", "-n", ns); !strings.Contains(out, "Running") || strings.Contains(out, "error") {
			t.Errorf("describe %s:\n%s", kind, out)
		}
	}
	nodes := run("", "get", "nodes")
	for name := range s.members {
		if strings.Count(nodes, "."+name+" ") != 3 {
			t.Errorf("get nodes lacks some of %s:\n%s", name, nodes)
		}
	}
	if out, err := s.kubectl(t, "", "get", "pods", "-n", "kube-system"); err != nil || !strings.Contains(out, "No resources found") {
		t.Errorf("get pods -n kube-system: %v\n%s", err, out)
	}
	logLatency(t, ns)

	s.stop(t, "west-a")
	begin := time.Now()
	list, err := s.fed.client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	took := time.Since(begin)
	atMost(t, "a list of pods with a dead cluster takes", took, 2500*time.Millisecond)
	if err != nil || len(list.Items) == 0 {
		t.Errorf("with west-a dead: %d pods after %v, %v", len(list.Items), took, err)
	}
	t.Logf("a list with a member just dead: %v", took.Round(time.Millisecond))
	out, err = s.kubectl(t, "", "get", "pods", "-n", ns)
	if err != nil || !strings.Contains(out, "Warning: cluster west-a: ") || strings.Contains(out, ".west-a ") {
		t.Errorf("get pods with west-a dead: %v\n%s", err, out)
	}
}

// logLatency writes down what a list and a get take at the federation, beside the members' own.
func logLatency(t *testing.T, ns string) {
	median := func(what func() error) time.Duration {
		var all []time.Duration
		for range 21 {
			begin := time.Now()
			if err := what(); err != nil {
				t.Error(err)
			}
			all = append(all, time.Since(begin))
		}
		slices.Sort(all)
		return all[len(all)/2].Round(100 * time.Microsecond)
	}
	list := func(c cluster) func() error {
		return func() error { _, err := c.client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{}); return err }
	}
	for name, m := range s.members {
		t.Logf("LIST of %s: %v", name, median(list(m)))
	}
	t.Logf("LIST of the federation: %v", median(list(s.fed)))
}
