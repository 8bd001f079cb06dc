package e2e

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestLeaveAndJoinAgain: a cluster with workloads leaves. Its names leave DNS, its replicas are placed on
// the others, and its copies go on running. It joins again at once: the same copies are taken up.
func TestLeaveAndJoinAgain(t *testing.T) {
	sets, services := s.fed.client.AppsV1().ReplicaSets(ns), s.fed.client.CoreV1().Services(ns)
	even := map[string]string{v1beta1.ReplicaSetPreferencesAnnotation: `{"rebalance":true,"clusters":{"*":{"weight":1}}}`}
	if _, err := sets.Create(t.Context(), replicaSet("leaves", 6, even), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := services.Create(t.Context(), loadBalancer("leaves"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	applyConfigMap(t, "leaves")
	remove(t, func(ctx context.Context) error { return sets.Delete(ctx, "leaves", background) })
	remove(t, func(ctx context.Context) error { return services.Delete(ctx, "leaves", background) })
	copies(t, "leaves", names...)
	replicasOf(t, "leaves", 6, "east-a", "east-b", "west-a")
	addresses(t, 3, "NOERROR")
	before := uids(t, "east-a")

	t.Cleanup(func() { joinAgain(t, "east-a") }) // also if the test ends early
	if out, err := unjoin(t, "east-a"); err != nil || !strings.Contains(out, "cluster east-a has left the federation") ||
		!strings.Contains(out, "keep running") {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := unjoin(t, "east-a"); err == nil || !strings.Contains(out, `cluster "east-a" is no member of the federation`) {
		t.Errorf("a second time: %v %s", err, out)
	}
	joinAgain(t, "east-a") // at once, while the member still clears up
	replicasOf(t, "leaves", 6, names...)
	if out, err := unjoin(t, "east-a"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	addresses(t, 2, "NXDOMAIN")
	replicasOf(t, "leaves", 6, "east-b", "west-a")
	if during := uids(t, "east-a"); !maps.Equal(before, during) {
		t.Errorf("unjoin touched the copies: %v, before %v", during, before)
	}
	if own := replicasIn(t, "east-a", "leaves"); own != 2 {
		t.Errorf("unjoin changed the workload that stays: %d replicas, want 2", own)
	}

	joinAgain(t, "east-a")
	addresses(t, 3, "NOERROR")
	replicasOf(t, "leaves", 6, names...)
	if after := uids(t, "east-a"); !maps.Equal(before, after) {
		t.Errorf("copies were made anew: %v, before %v", after, before)
	}
}

// TestClusterProperties: each cluster says who it is and of which cluster set, while it is a member. What another one has said stays.
func TestClusterProperties(t *testing.T) {
	resource := schema.GroupVersionResource{Group: "about.k8s.io", Version: "v1beta1", Resource: "clusterproperties"}
	says := func(member, name string) string {
		u, err := s.members[member].dyn.Resource(resource).Get(context.Background(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		if err != nil {
			t.Fatal(err)
		}
		value, _, _ := unstructured.NestedString(u.Object, "spec", "value")
		return value
	}
	const itself, set = "cluster.clusterset.k8s.io", "clusterset.k8s.io"
	for _, member := range names {
		if is, of := says(member, itself), says(member, set); is != member || of != s.env["FEDERATION_NAME"] {
			t.Errorf("%s says that it is %q of %q, want it of %q", member, is, of, s.env["FEDERATION_NAME"])
		}
	}

	t.Cleanup(func() { joinAgain(t, "west-a") })
	if out, err := unjoin(t, "west-a"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	eventually(t, 30*time.Second, func() string {
		if is, of := says("west-a", itself), says("west-a", set); is != "" || of != "" {
			return fmt.Sprintf("after unjoin it says that it is %q of %q", is, of)
		}
		return ""
	})
	other := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "about.k8s.io/v1beta1", "kind": "ClusterProperty", "metadata": map[string]any{"name": set}, "spec": map[string]any{"value": "another"},
	}}
	properties := s.members["west-a"].dyn.Resource(resource)
	if _, err := properties.Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return properties.Delete(ctx, set, metav1.DeleteOptions{}) })
	joinAgain(t, "west-a")
	if is, of := says("west-a", itself), says("west-a", set); is != "west-a" || of != "another" {
		t.Errorf("joined beside another cluster set, it says that it is %q of %q", is, of)
	}
}

// TestNodeAgentIsInstalled: a cluster joins again, now with the node agent. It is meant to run on each node, with an account that
// may read what it needs and no more, and goes when the cluster leaves.
func TestNodeAgentIsInstalled(t *testing.T) {
	const where, name = v1beta1.FederationNamespace, "federation-nodeagent"
	member := s.members["east-a"].client
	t.Cleanup(func() { joinAgain(t, "east-a") }) // also if the test ends early
	for range 2 {                                // the second time refreshes
		out, err := joinMember(t, "east-a", "--with-nodeagent")
		if err != nil || !strings.Contains(out, "DaemonSet "+name+" installed") {
			t.Fatalf("%v: %s", err, out)
		}
	}
	nodes, err := member.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, func() string {
		d, err := member.AppsV1().DaemonSets(where).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || int(d.Status.NumberReady) != len(nodes.Items) {
			return fmt.Sprintf("%v; ready %d of %d", err, d.Status.NumberReady, len(nodes.Items))
		}
		return ""
	})
	for what, want := range map[string]bool{"services": true, "nodes": true, "endpointslices.discovery.k8s.io": true, "secrets": false, "pods": false} {
		resource, group, _ := strings.Cut(what, ".")
		for _, verb := range []string{"list", "watch", "delete"} {
			review, err := member.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{User: "system:serviceaccount:" + where + ":" + name,
					ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource}},
			}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if want := want && verb != "delete"; review.Status.Allowed != want {
				t.Errorf("%s %s: allowed %v, want %v", verb, what, review.Status.Allowed, want)
			}
		}
	}
	if out, err := unjoin(t, "east-a"); err != nil || !strings.Contains(out, "With them goes the DaemonSet "+name) {
		t.Fatalf("%v: %s", err, out)
	}
	eventually(t, 30*time.Second, func() string {
		_, err1 := member.AppsV1().DaemonSets(where).Get(t.Context(), name, metav1.GetOptions{})
		_, err2 := member.RbacV1().ClusterRoles().Get(t.Context(), name, metav1.GetOptions{})
		if !apierrors.IsNotFound(err1) || !apierrors.IsNotFound(err2) {
			return fmt.Sprintf("after unjoin: DaemonSet %v, ClusterRole %v", err1, err2)
		}
		return ""
	})
}

// plugin runs kubectl-federation against the federation and returns what it printed.
func (s *stack) plugin(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	args = append(args, "--kubeconfig", s.env["FEDERATION_KUBECONFIG"])
	out, err := exec.CommandContext(ctx, filepath.Join(s.root, "_output", "bin", "kubectl-federation"), args...).CombinedOutput()
	return string(out), err
}

func joinAgain(t *testing.T, name string, flags ...string) {
	t.Helper()
	out, err := joinMember(t, name, flags...)
	if err != nil || !pullMode && !strings.Contains(out, "joined and is ready") {
		t.Fatalf("join %s: %v: %s", name, err, out)
	}
	clusterReady(t, name, corev1.ConditionTrue)
}

// joinMember has a member join as those of the stack do, and returns what join printed.
func joinMember(t *testing.T, name string, flags ...string) (string, error) {
	t.Helper()
	args := append([]string{"join", name, "--member-kubeconfig", filepath.Join(s.dir, "members", name, "kubeconfig")}, flags...)
	if !pullMode {
		return s.plugin(t, args...)
	}
	out, err := s.plugin(t, append(args, "--pull")...)
	if err == nil {
		err = s.local("agents")
	}
	return out, err
}

// unjoin has a member leave. One in pull mode the federation cannot clear.
func unjoin(t *testing.T, name string) (string, error) {
	t.Helper()
	args := []string{"unjoin", name, "--yes"}
	if pullMode {
		args = append(args, "--member-kubeconfig", filepath.Join(s.dir, "members", name, "kubeconfig"))
	}
	return s.plugin(t, args...)
}

// addresses waits until the global name has so many, and the zone's name of east-a has this code.
func addresses(t *testing.T, global int, rcodeOfZone string) {
	t.Helper()
	at := ".default." + s.env["FEDERATION_NAME"] + ".svc."
	eventually(t, 30*time.Second, func() string {
		_, all := s.lookup(t, "leaves"+at+s.env["DNS_ZONE"], dns.TypeA)
		rcode, own := s.lookup(t, "leaves"+at+"a.east."+s.env["DNS_ZONE"], dns.TypeA)
		if len(all) != global || rcode != rcodeOfZone {
			return fmt.Sprintf("global %v, want %d; zone of east-a %s %v, want %s", all, global, rcode, own, rcodeOfZone)
		}
		return ""
	})
}

// replicasOf waits until members hold so many together, and the federation says that all are ready.
func replicasOf(t *testing.T, name string, total int32, members ...string) {
	t.Helper()
	eventually(t, 60*time.Second, func() string {
		sum := int32(0)
		for _, m := range members {
			sum += replicasIn(t, m, name)
		}
		got, err := s.fed.client.AppsV1().ReplicaSets(ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || sum != total || got.Status.ReadyReplicas != total {
			return fmt.Sprintf("%v; %v hold %d, the federation says %d ready; want %d", err, members, sum, got.Status.ReadyReplicas, total)
		}
		return ""
	})
}

func replicasIn(t *testing.T, member, name string) int32 {
	t.Helper()
	got, err := s.members[member].client.AppsV1().ReplicaSets(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return *got.Spec.Replicas
}

// uids are those of the test's copies in a member, by kind.
func uids(t *testing.T, member string) map[string]types.UID {
	t.Helper()
	c := s.members[member].client
	set, err1 := c.AppsV1().ReplicaSets(ns).Get(t.Context(), "leaves", metav1.GetOptions{})
	service, err2 := c.CoreV1().Services(ns).Get(t.Context(), "leaves", metav1.GetOptions{})
	config, err3 := c.CoreV1().ConfigMaps(ns).Get(t.Context(), "leaves", metav1.GetOptions{})
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(member, err1, err2, err3)
	}
	return map[string]types.UID{"ReplicaSet": set.UID, "Service": service.UID, "ConfigMap": config.UID}
}
