package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
)

const ns = metav1.NamespaceDefault

var names = []string{"east-a", "east-b", "west-a"}

func replicaSet(name string, replicas int32, annotations map[string]string) *appsv1.ReplicaSet {
	labels := map[string]string{"app": name}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
			},
		},
	}
}

func loadBalancer(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Selector: map[string]string{"app": name},
			Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"key": "value"}}
}

// remove deletes what a test made, and waits for it to be gone everywhere.
func remove(t *testing.T, do func(context.Context) error) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := do(ctx); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
}

var background = metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}

func applyConfigMap(t *testing.T, name string) {
	t.Helper()
	if _, err := s.fed.client.CoreV1().ConfigMaps(ns).Create(t.Context(), configMap(name), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error {
		return s.fed.client.CoreV1().ConfigMaps(ns).Delete(ctx, name, background)
	})
}

// copies waits until a ConfigMap is in the members named, and in no other.
func copies(t *testing.T, name string, in ...string) time.Duration {
	t.Helper()
	return eventually(t, 30*time.Second, func() string {
		for member, c := range s.members {
			_, err := c.client.CoreV1().ConfigMaps(ns).Get(t.Context(), name, metav1.GetOptions{})
			if want := slices.Contains(in, member); want != (err == nil) {
				return fmt.Sprintf("ConfigMap %s in %s: %v, want it there: %v", name, member, err, want)
			}
		}
		return ""
	})
}

// clusterReady waits until a cluster is ready or not, also in a cleanup.
func clusterReady(t *testing.T, name string, want corev1.ConditionStatus) time.Duration {
	t.Helper()
	return eventually(t, 30*time.Second, func() string {
		u, err := s.fed.dyn.Resource(v1beta1.ClustersResource).Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, item := range conditions {
			if c := item.(map[string]any); c["type"] == "Ready" && c["status"] == string(want) {
				return ""
			}
		}
		return fmt.Sprintf("cluster %s: %v, want Ready %s", name, conditions, want)
	})
}

func TestReplicasFollowPreferencesAndScale(t *testing.T) {
	prefs := `{"rebalance":true,"clusters":{"east-a":{"minReplicas":2,"maxReplicas":4,"weight":2},"*":{"weight":1}}}`
	sets := s.fed.client.AppsV1().ReplicaSets(ns)
	if _, err := sets.Create(t.Context(), replicaSet("spread", 8, map[string]string{v1beta1.ReplicaSetPreferencesAnnotation: prefs}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return sets.Delete(ctx, "spread", background) })
	spread := func(want map[string]int32) {
		t.Helper()
		total := int32(0)
		for member, n := range want {
			total += n
			eventually(t, 60*time.Second, func() string {
				rs, err := s.members[member].client.AppsV1().ReplicaSets(ns).Get(t.Context(), "spread", metav1.GetOptions{})
				if err != nil {
					return err.Error()
				}
				if *rs.Spec.Replicas != n || rs.Status.ReadyReplicas != n {
					return fmt.Sprintf("%s has %d, %d ready, want %d", member, *rs.Spec.Replicas, rs.Status.ReadyReplicas, n)
				}
				return ""
			})
		}
		eventually(t, 30*time.Second, func() string {
			rs, err := sets.Get(t.Context(), "spread", metav1.GetOptions{})
			if err != nil || rs.Status.ReadyReplicas != total || rs.Status.Replicas != total || rs.Status.ObservedGeneration != rs.Generation {
				return fmt.Sprintf("%v; status %+v, want %d of generation %d", err, rs.Status, total, rs.Generation)
			}
			return ""
		})
	}
	spread(map[string]int32{"east-a": 4, "east-b": 2, "west-a": 2})
	if out, err := s.kubectl(t, "", "scale", "replicaset", "spread", "--replicas=12"); err != nil {
		t.Fatal(out)
	}
	spread(map[string]int32{"east-a": 4, "east-b": 4, "west-a": 4})
}

func TestClusterSelector(t *testing.T) {
	if out, err := s.kubectl(t, "", "label", "cluster", "east-a", "west-a", "tier=gold", "--overwrite"); err != nil {
		t.Fatal(out)
	}
	t.Cleanup(func() { _, _ = s.kubectl(t, "", "label", "cluster", "east-a", "west-a", "tier-") })
	applyConfigMap(t, "selected")
	copies(t, "selected", names...)
	selector := v1beta1.ClusterSelectorAnnotation + `=[{"key":"tier","operator":"In","values":["gold"]}]`
	if out, err := s.kubectl(t, "", "annotate", "configmap", "selected", selector); err != nil {
		t.Fatal(out)
	}
	copies(t, "selected", "east-a", "west-a")
	if out, err := s.kubectl(t, "", "label", "cluster", "west-a", "tier-"); err != nil {
		t.Fatal(out)
	}
	copies(t, "selected", "east-a")
}

func TestDriftIsPutRight(t *testing.T) {
	applyConfigMap(t, "drift")
	copies(t, "drift", names...)
	maps := s.members["east-b"].client.CoreV1().ConfigMaps(ns)
	for _, patch := range []string{
		`{"data":{"key":"drifted"}}`,
		`{"data":{"key":null}}`,
		`{"metadata":{"labels":{"` + v1beta1.ManagedByLabel + `":null}}}`,
	} {
		if _, err := maps.Patch(t.Context(), "drift", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, 20*time.Second, func() string {
			got, err := maps.Get(t.Context(), "drift", metav1.GetOptions{})
			if err != nil || got.Data["key"] != "value" || got.Labels[v1beta1.ManagedByLabel] == "" {
				return fmt.Sprintf("after %s: %v %v %v", patch, err, got.Data, got.Labels)
			}
			return ""
		})
	}
	if err := maps.Delete(t.Context(), "drift", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	copies(t, "drift", names...)
}

func TestFieldTakenOutAtTheFederationLeavesTheMembers(t *testing.T) {
	applyConfigMap(t, "fields")
	copies(t, "fields", names...)
	patch := []byte(`{"data":{"key":null,"other":"x"}}`)
	if _, err := s.fed.client.CoreV1().ConfigMaps(ns).Patch(t.Context(), "fields", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, func() string {
		for name, m := range s.members {
			got, err := m.client.CoreV1().ConfigMaps(ns).Get(t.Context(), "fields", metav1.GetOptions{})
			if err != nil || len(got.Data) != 1 || got.Data["other"] != "x" {
				return fmt.Sprintf("%s: %v %v", name, err, got.Data)
			}
		}
		return ""
	})
}

func TestForeignObjectIsLeftAloneAndReported(t *testing.T) {
	maps := s.members["west-a"].client.CoreV1().ConfigMaps(ns)
	foreign := configMap("foreign")
	foreign.Data = map[string]string{"theirs": "1"}
	if _, err := maps.Create(t.Context(), foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return maps.Delete(ctx, "foreign", metav1.DeleteOptions{}) })
	applyConfigMap(t, "foreign")
	copies(t, "foreign", names...)
	eventually(t, 20*time.Second, func() string {
		events, err := s.fed.client.CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=foreign"})
		for _, e := range events.Items {
			if e.Reason == "PropagationConflict" && strings.Contains(e.Message, "west-a") {
				return ""
			}
		}
		return fmt.Sprintf("no event says so: %v %v", err, events)
	})
	got, err := maps.Get(t.Context(), "foreign", metav1.GetOptions{})
	if err != nil || got.Data["theirs"] != "1" || len(got.Data) != 1 || len(got.Labels) > 0 {
		t.Errorf("the foreign object was touched: %v %+v", err, got)
	}
	if err := s.fed.client.CoreV1().ConfigMaps(ns).Delete(t.Context(), "foreign", background); err != nil {
		t.Fatal(err)
	}
	copies(t, "foreign", "west-a")
}

func TestRefusalIsReportedAndTheOthersGoOn(t *testing.T) {
	set := replicaSet("refused", 3, nil)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/replicasets.apps": {}}}}
	quotas := s.members["east-b"].client.CoreV1().ResourceQuotas(ns)
	if _, err := quotas.Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return quotas.Delete(ctx, "none", metav1.DeleteOptions{}) })
	eventually(t, 20*time.Second, func() string {
		q, err := quotas.Get(t.Context(), "none", metav1.GetOptions{})
		if err != nil || len(q.Status.Hard) == 0 {
			return fmt.Sprint("the quota is not in force: ", err)
		}
		return ""
	})
	sets := s.fed.client.AppsV1().ReplicaSets(ns)
	if _, err := sets.Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return sets.Delete(ctx, "refused", background) })
	eventually(t, 30*time.Second, func() string {
		got, err := sets.Get(t.Context(), "refused", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		for _, c := range got.Status.Conditions {
			if c.Type == "Propagated" && c.Status == "False" && c.Reason == "Rejected" && strings.Contains(c.Message, "east-b") &&
				strings.Contains(c.Message, "quota") && got.Status.ReadyReplicas == 2 {
				return ""
			}
		}
		return fmt.Sprintf("%+v", got.Status)
	})
	says := func() (string, *v1beta1.ClusterOutOfSync) {
		got, err := sets.Get(t.Context(), "refused", metav1.GetOptions{})
		if err != nil {
			return err.Error(), nil
		}
		text := got.Annotations[v1beta1.OutOfSyncAnnotation]
		return text, v1beta1.ParseOutOfSync(text).In("east-b")
	}
	if text, one := says(); one == nil || one.Reason != "Rejected" || !strings.Contains(one.Message, "quota") {
		t.Errorf("as data it says %q", text)
	}
	if err := quotas.Delete(t.Context(), "none", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 90*time.Second, func() string {
		text, _ := says()
		return text
	})
}

func TestNamespaceAndItsContentComeAndGo(t *testing.T) {
	if _, err := s.fed.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	refer(t, "shop", "key")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, StringData: map[string]string{"k": "v"}}
	if _, err := s.fed.client.CoreV1().Secrets("shop").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, func() string {
		for name, m := range s.members {
			if got, err := m.client.CoreV1().Secrets("shop").Get(t.Context(), "key", metav1.GetOptions{}); err != nil || string(got.Data["k"]) != "v" {
				return fmt.Sprint(name, err)
			}
		}
		return ""
	})
	if out, err := s.kubectl(t, "", "delete", "namespace", "shop", "--timeout=150s"); err != nil {
		t.Fatal(out)
	}
	eventually(t, 30*time.Second, func() string {
		for name, m := range s.members {
			if _, err := m.client.CoreV1().Namespaces().Get(t.Context(), "shop", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Sprintf("%s still has the namespace: %v", name, err)
			}
		}
		return ""
	})
}

func TestDeleteEndsThoughAMemberIsDead(t *testing.T) {
	applyConfigMap(t, "doomed")
	applyConfigMap(t, "orphaned")
	copies(t, "doomed", names...)
	copies(t, "orphaned", names...)
	resume := s.stop(t, "west-a")
	for _, args := range [][]string{{"doomed"}, {"orphaned", "--cascade=orphan"}} {
		started := time.Now()
		if out, err := s.kubectl(t, "", append([]string{"delete", "configmap", "--timeout=120s"}, args...)...); err != nil {
			t.Fatal(out)
		}
		t.Logf("delete of %v ended after %s", args, time.Since(started).Round(time.Millisecond))
	}
	resume()
	copies(t, "doomed")
	copies(t, "orphaned", names...)
	eventually(t, 20*time.Second, func() string {
		for name, m := range s.members {
			got, err := m.client.CoreV1().ConfigMaps(ns).Get(t.Context(), "orphaned", metav1.GetOptions{})
			if err != nil || got.Labels[v1beta1.ManagedByLabel] != "" || got.Annotations[v1beta1.AppliedHashAnnotation] != "" {
				return fmt.Sprintf("%s: %v, labels %v annotations %v", name, err, got.Labels, got.Annotations)
			}
		}
		return ""
	})
	for _, m := range s.members {
		_ = m.client.CoreV1().ConfigMaps(ns).Delete(t.Context(), "orphaned", metav1.DeleteOptions{})
	}
	clusterReady(t, "west-a", corev1.ConditionTrue)
}

// The type of a Secret cannot change: a member that was away must not keep the old one for ever.
func TestAnObjectMadeAnewWhileAMemberIsAway(t *testing.T) {
	secrets := s.fed.client.CoreV1().Secrets(ns)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "recreated"}, StringData: map[string]string{"username": "u"}}
	arrives := func(kind corev1.SecretType, in ...string) {
		t.Helper()
		secret.Type = kind
		if _, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, 20*time.Second, func() string {
			for _, name := range in {
				if got, err := s.members[name].client.CoreV1().Secrets(ns).Get(t.Context(), "recreated", metav1.GetOptions{}); err != nil || got.Type != kind {
					return fmt.Sprintf("%s: %v %v, want %s", name, err, got.Type, kind)
				}
			}
			return ""
		})
	}
	refer(t, ns, "recreated")
	remove(t, func(ctx context.Context) error { return secrets.Delete(ctx, "recreated", background) })
	arrives(corev1.SecretTypeOpaque, names...)
	resume := s.stop(t, "east-b")
	clusterReady(t, "east-b", corev1.ConditionFalse)
	if out, err := s.kubectl(t, "", "delete", "secret", "recreated", "--timeout=60s"); err != nil {
		t.Fatal(out)
	}
	arrives(corev1.SecretTypeBasicAuth, "east-a", "west-a")
	resume()
	eventually(t, 30*time.Second, func() string {
		got, err := s.members["east-b"].client.CoreV1().Secrets(ns).Get(t.Context(), "recreated", metav1.GetOptions{})
		if err != nil || got.Type != corev1.SecretTypeBasicAuth {
			return fmt.Sprintf("%v %v", err, got.Type)
		}
		return ""
	})
	clusterReady(t, "east-b", corev1.ConditionTrue)
}

func TestForegroundDeleteEnds(t *testing.T) {
	sets := s.fed.client.AppsV1().ReplicaSets(ns)
	if _, err := sets.Create(t.Context(), replicaSet("front", 6, nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, func() string {
		if got, err := sets.Get(t.Context(), "front", metav1.GetOptions{}); err != nil || got.Status.ReadyReplicas != 6 {
			return fmt.Sprint(err, got.Status)
		}
		return ""
	})
	if out, err := s.kubectl(t, "", "delete", "replicaset", "front", "--cascade=foreground", "--timeout=120s"); err != nil {
		t.Fatal(out)
	}
	for name, m := range s.members {
		pods, err := m.client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "app=front"})
		if err != nil || len(pods.Items) > 0 {
			t.Errorf("%s still has %d pods (%v)", name, len(pods.Items), err)
		}
	}
}

func TestNamesFollowEndpointsAndClusters(t *testing.T) {
	sets, services := s.fed.client.AppsV1().ReplicaSets(ns), s.fed.client.CoreV1().Services(ns)
	if _, err := sets.Create(t.Context(), replicaSet("named", 3, nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return sets.Delete(ctx, "named", background) })
	if _, err := services.Create(t.Context(), loadBalancer("named"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return services.Delete(ctx, "named", background) })

	prefix := "named.default." + s.env["FEDERATION_NAME"] + ".svc."
	zone, region, global := prefix+"a.east."+s.env["DNS_ZONE"], prefix+"east."+s.env["DNS_ZONE"], prefix+s.env["DNS_ZONE"]
	count := func(name string, want int) string {
		rcode, answers := s.lookup(t, name, 1)
		addresses := slices.DeleteFunc(answers, func(a string) bool { return strings.HasSuffix(a, ".") })
		if len(addresses) != want {
			return fmt.Sprintf("%s: %s %v, want %d addresses", name, rcode, answers, want)
		}
		return ""
	}
	for name, want := range map[string]int{zone: 1, region: 2, global: 3} {
		eventually(t, 30*time.Second, func() string { return count(name, want) })
	}

	// The endpoint of east-a goes unready.
	east := s.members["east-a"].client.CoreV1()
	pods, err := east.Pods(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "app=named"})
	if err != nil || len(pods.Items) != 1 {
		t.Fatal(err, len(pods.Items))
	}
	setReady(t, pods.Items[0].Name, "False")
	took := eventually(t, 20*time.Second, func() string { return count(global, 2) })
	t.Logf("endpoint unready → answer changed: %s", took.Round(time.Millisecond))
	if _, answers := s.lookup(t, zone, 5); !slices.Equal(answers, []string{region + "."}) {
		t.Errorf("zone name: %v, want a CNAME of %s", answers, region)
	}
	setReady(t, pods.Items[0].Name, "True")
	eventually(t, 20*time.Second, func() string { return count(global, 3) })

	// The whole of east-a is lost, and comes back.
	resume := s.stop(t, "east-a")
	took = eventually(t, 30*time.Second, func() string { return count(global, 2) })
	t.Logf("API gone → answer changed: %s", took.Round(time.Millisecond))
	resume()
	took = eventually(t, 30*time.Second, func() string { return count(global, 3) })
	t.Logf("API back → answer changed: %s", took.Round(time.Millisecond))
}

// setReady sets a pod's readiness in east-a, as its kubelet would.
func setReady(t *testing.T, pod, status string) {
	t.Helper()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q},{"type":"ContainersReady","status":%q}]}}`, status, status)
	if _, err := s.members["east-a"].client.CoreV1().Pods(ns).Patch(t.Context(), pod, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}

func TestClusterHealth(t *testing.T) {
	for _, c := range []struct {
		name   string
		member string
		off    func() (on func())
	}{
		{"hangs", "east-b", func() func() { return s.stop(t, "east-b") }},
		{"is killed", "west-a", func() func() {
			s.signal(t, syscall.SIGKILL, "members", "west-a", "pid")
			return func() {
				if err := s.up(); err != nil {
					t.Fatal(err)
				}
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			on := c.off()
			t.Logf("marked after %s", clusterReady(t, c.member, corev1.ConditionFalse).Round(time.Millisecond))
			on()
			t.Logf("ready again after %s", clusterReady(t, c.member, corev1.ConditionTrue).Round(time.Millisecond))
		})
	}
}

// TestNothingIsLost kills the federation amid 200 concurrent applies.
func TestNothingIsLost(t *testing.T) {
	const objects = 200
	var acknowledged sync.Map
	var done atomic.Int32
	halfway := make(chan struct{})
	var wg sync.WaitGroup
	for i := range objects {
		wg.Go(func() {
			name, err := fmt.Sprintf("lost-%03d", i), error(nil)
			switch i % 3 {
			case 0:
				_, err = s.fed.client.AppsV1().ReplicaSets(ns).Create(t.Context(), replicaSet(name, 3, nil), metav1.CreateOptions{})
			case 1:
				_, err = s.fed.client.CoreV1().Services(ns).Create(t.Context(), loadBalancer(name), metav1.CreateOptions{})
			default:
				_, err = s.fed.client.CoreV1().ConfigMaps(ns).Create(t.Context(), configMap(name), metav1.CreateOptions{})
			}
			if err == nil {
				acknowledged.Store(name, i%3)
			}
			if done.Add(1) == objects/2 {
				close(halfway)
			}
		})
	}
	<-halfway
	s.signal(t, syscall.SIGKILL, "federation.pid")
	wg.Wait()
	if err := s.up(); err != nil {
		t.Fatal(err)
	}
	kept := 0
	acknowledged.Range(func(any, any) bool { kept++; return true })
	t.Logf("%d of %d applies were acknowledged before or around the kill", kept, objects)
	if kept < objects/4 || kept == objects {
		t.Logf("the kill did not come amid the applies")
	}
	t.Logf("converged %s after the restart", converged(t, "lost-", &acknowledged).Round(time.Millisecond))
	deleteAll(t, "lost-")
	t.Logf("all deleted everywhere after %s", converged(t, "lost-", &sync.Map{}).Round(time.Millisecond))
}

// deleteAll deletes what the federation has of the objects whose names begin with prefix.
func deleteAll(t *testing.T, prefix string) {
	t.Helper()
	ids, err := inventory(t, s.fed, prefix)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		kind, name, _ := strings.Cut(id, "/")
		switch kind {
		case "ReplicaSet":
			err = s.fed.client.AppsV1().ReplicaSets(ns).Delete(t.Context(), name, background)
		case "Service":
			err = s.fed.client.CoreV1().Services(ns).Delete(t.Context(), name, background)
		default:
			err = s.fed.client.CoreV1().ConfigMaps(ns).Delete(t.Context(), name, background)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// converged waits until the federation has at least what was acknowledged, and each member exactly
// what the federation has.
func converged(t *testing.T, prefix string, acknowledged *sync.Map) time.Duration {
	t.Helper()
	return eventually(t, 90*time.Second, func() string {
		fed, err := inventory(t, s.fed, prefix)
		if err != nil {
			return err.Error()
		}
		missing := ""
		acknowledged.Range(func(name, kind any) bool {
			if !slices.ContainsFunc(fed, func(id string) bool { return strings.HasSuffix(id, "/"+name.(string)) }) {
				missing = fmt.Sprintf("%v was acknowledged and is gone", name)
			}
			return missing == ""
		})
		if missing != "" {
			return missing
		}
		for member, c := range s.members {
			there, err := inventory(t, c, prefix)
			if err != nil {
				return err.Error()
			}
			if !slices.Equal(there, fed) {
				return fmt.Sprintf("%s has %d objects, the federation %d", member, len(there), len(fed))
			}
		}
		empty := true
		acknowledged.Range(func(any, any) bool { empty = false; return false })
		if empty && len(fed) > 0 {
			return fmt.Sprintf("%d objects are still there", len(fed))
		}
		return ""
	})
}

// inventory lists KIND/NAME of objects whose name begins with prefix, sorted.
func inventory(t *testing.T, c cluster, prefix string) (ids []string, err error) {
	t.Helper()
	add := func(kind, name string) {
		if strings.HasPrefix(name, prefix) {
			ids = append(ids, kind+"/"+name)
		}
	}
	sets, err := c.client.AppsV1().ReplicaSets(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, o := range sets.Items {
		add("ReplicaSet", o.Name)
	}
	services, err := c.client.CoreV1().Services(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, o := range services.Items {
		add("Service", o.Name)
	}
	maps, err := c.client.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, o := range maps.Items {
		add("ConfigMap", o.Name)
	}
	slices.Sort(ids)
	return ids, nil
}

// TestRestartWritesNothing: after a restart with everything in place, no member is written to.
func TestRestartWritesNothing(t *testing.T) {
	for i := range 20 {
		applyConfigMap(t, fmt.Sprintf("still-%d", i))
	}
	sets := s.fed.client.AppsV1().ReplicaSets(ns)
	for i := range 5 {
		name := fmt.Sprintf("still-%d", i)
		if _, err := sets.Create(t.Context(), replicaSet(name, 3, nil), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		remove(t, func(ctx context.Context) error { return sets.Delete(ctx, name, background) })
	}
	service := loadBalancer("still-lb")
	if _, err := s.fed.client.CoreV1().Services(ns).Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error {
		return s.fed.client.CoreV1().Services(ns).Delete(ctx, "still-lb", background)
	})
	eventually(t, 60*time.Second, func() string {
		list, err := sets.List(t.Context(), metav1.ListOptions{})
		for _, rs := range list.Items {
			if rs.Status.ReadyReplicas != *rs.Spec.Replicas {
				return fmt.Sprint(rs.Name, rs.Status)
			}
		}
		return errText(err)
	})
	copies(t, "still-19", names...)
	s.signal(t, syscall.SIGTERM, "federation.pid")
	time.Sleep(3 * time.Second)
	if err := s.up(); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		clusterReady(t, name, corev1.ConditionTrue)
	}
	time.Sleep(3 * time.Second) // what would be written would be by now
	raw, err := s.fed.client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(raw), "\n") {
		if strings.HasPrefix(line, "federation_member_writes_total") {
			t.Errorf("written after a restart: %s", line)
		}
	}
	if !strings.Contains(string(raw), "federation_members_engaged 3") {
		t.Error("the metric federation_members_engaged does not say 3: were the members engaged at all?")
	}
}

func errText(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}
