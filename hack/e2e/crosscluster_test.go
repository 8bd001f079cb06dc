package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
)

// slicesOf returns what a member knows of the other clusters' addresses of a Service, as "CLUSTER=ADDRESS ready", sorted.
func slicesOf(t *testing.T, member, service string) (all []discoveryv1.EndpointSlice, known []string) {
	t.Helper()
	list, err := s.members[member].client.DiscoveryV1().EndpointSlices(ns).List(t.Context(), metav1.ListOptions{LabelSelector: v1beta1.RemoteServiceLabel + "=" + service})
	if err != nil {
		t.Fatal(err)
	}
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			text := slice.Labels[v1beta1.SourceClusterLabel] + "=" + strings.Join(e.Addresses, ",")
			if *e.Conditions.Ready {
				text += " ready"
			}
			known = append(known, text)
		}
	}
	slices.Sort(known)
	return list.Items, known
}

// across waits until each member knows these, less itself: by cluster, what follows its name.
func across(t *testing.T, service string, want map[string]string, members ...string) time.Duration {
	t.Helper()
	return eventually(t, 30*time.Second, func() string {
		for _, member := range members {
			var others []string
			for _, cluster := range slices.Sorted(maps.Keys(want)) {
				if cluster != member {
					others = append(others, cluster+"="+want[cluster])
				}
			}
			if _, got := slicesOf(t, member, service); !slices.Equal(got, others) {
				return fmt.Sprintf("%s knows %q, want %q", member, got, others)
			}
		}
		return ""
	})
}

// everywhere makes a Service with a pod in each member, and waits until each knows the load balancers of the others, which it returns as across wants them.
func everywhere(t *testing.T, name string) (all map[string]string) {
	t.Helper()
	sets, services := s.fed.client.AppsV1().ReplicaSets(ns), s.fed.client.CoreV1().Services(ns)
	if _, err := sets.Create(t.Context(), replicaSet(name, 3, nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return sets.Delete(ctx, name, background) })
	if _, err := services.Create(t.Context(), loadBalancer(name), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return services.Delete(ctx, name, background) })
	all = map[string]string{}
	for _, member := range names {
		eventually(t, 30*time.Second, func() string {
			service, err := s.members[member].client.CoreV1().Services(ns).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil || len(service.Status.LoadBalancer.Ingress) != 1 {
				return fmt.Sprintf("%s: %v", member, err)
			}
			all[member] = service.Status.LoadBalancer.Ingress[0].IP + " ready"
			return ""
		})
	}
	across(t, name, all, names...)
	return all
}

// TestMembersKnowOfEachOther: each member has EndpointSlices with the load balancers of the others, which follow what is ready there,
// stay while the federation is away, and go with their Service.
func TestMembersKnowOfEachOther(t *testing.T) {
	all := everywhere(t, "across")
	eventually(t, 10*time.Second, func() string {
		out, err := s.plugin(t, "explain", "service/across", "-n", ns)
		if n := strings.Count(out, "   yes     100      in sync"); err != nil || n != len(names)*(len(names)-1) {
			return fmt.Sprintf("explain: %v:\n%s", err, out)
		}
		return ""
	})

	pods, err := s.members["east-a"].client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "app=across"})
	if err != nil || len(pods.Items) != 1 {
		t.Fatal(err, len(pods.Items))
	}
	setReady(t, pods.Items[0].Name, "False")
	less := maps.Clone(all)
	delete(less, "east-a")
	t.Logf("endpoint unready → the others know: %s", across(t, "across", less, names...).Round(time.Millisecond))
	setReady(t, pods.Items[0].Name, "True")
	t.Logf("endpoint ready → the others know: %s", across(t, "across", all, names...).Round(time.Millisecond))

	resume := s.stop(t, "east-a")
	lost := maps.Clone(all)
	lost["east-a"] = strings.TrimSuffix(all["east-a"], " ready")
	t.Logf("API gone → the others know: %s", across(t, "across", lost, "east-b", "west-a").Round(time.Millisecond))
	resume()
	across(t, "across", all, names...)

	before, _ := slicesOf(t, "west-a", "across")
	s.signal(t, syscall.SIGKILL, "federation.pid")
	t.Cleanup(func() { up(t) })
	setReady(t, pods.Items[0].Name, "False")
	up(t)
	across(t, "across", less, names...)
	setReady(t, pods.Items[0].Name, "True")
	across(t, "across", all, names...)
	for _, slice := range before {
		now, err := s.members["west-a"].client.DiscoveryV1().EndpointSlices(ns).Get(t.Context(), slice.Name, metav1.GetOptions{})
		if err != nil || slice.Labels[v1beta1.SourceClusterLabel] == "east-b" && now.ResourceVersion != slice.ResourceVersion {
			t.Errorf("west-a: slice %s of a cluster with which nothing happened was written while the federation restarted, or is gone (%v)", slice.Name, err)
		}
	}

	if err := s.fed.client.CoreV1().Services(ns).Delete(t.Context(), "across", background); err != nil {
		t.Fatal(err)
	}
	t.Logf("Service deleted → slices gone: %s", across(t, "across", nil, names...).Round(time.Millisecond))
}

// TestPodsOfOtherMembers: a Service without load balancers is offered by the pods of members in one network, within what is pinned of them; they follow
// what is ready there, and stay while a member is lost.
func TestPodsOfOtherMembers(t *testing.T) {
	const name = "across-pods"
	sets, services := s.fed.client.AppsV1().ReplicaSets(ns), s.fed.client.CoreV1().Services(ns)
	if _, err := sets.Create(t.Context(), replicaSet(name, 3, nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return sets.Delete(ctx, name, background) })
	service := loadBalancer(name)
	service.Spec.Type = corev1.ServiceTypeClusterIP
	if _, err := services.Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return services.Delete(ctx, name, background) })
	all, pod := map[string]string{}, map[string]corev1.Pod{}
	for _, member := range names {
		eventually(t, 30*time.Second, func() string {
			pods, err := s.members[member].client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
			if err != nil || len(pods.Items) != 1 || pods.Items[0].Status.PodIP == "" {
				return fmt.Sprintf("%s: %v", member, err)
			}
			pod[member], all[member] = pods.Items[0], pods.Items[0].Status.PodIP+" ready"
			return ""
		})
	}
	inNetwork := func(ctx context.Context, network string, pods ...string) error {
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"network": network, "podCIDRs": pods}})
		for _, member := range names {
			_, failed := s.fed.dyn.Resource(v1beta1.ClustersResource).Patch(ctx, member, types.MergePatchType, patch, metav1.PatchOptions{})
			err = errors.Join(err, failed)
		}
		return err
	}
	across(t, name, nil, names...)
	explains := func(want string) {
		t.Helper()
		eventually(t, 10*time.Second, func() string {
			if out, err := s.plugin(t, "explain", "service/"+name, "-n", ns); err != nil || !strings.Contains(out, want) {
				return fmt.Sprintf("explain: %v:\n%s\nwithout %q", err, out, want)
			}
			return ""
		})
	}
	explains("no two clusters are in one network")
	remove(t, func(ctx context.Context) error { return inNetwork(ctx, "") })
	if err := inNetwork(t.Context(), "flat"); err != nil {
		t.Fatal(err)
	}
	t.Logf("one network → they have each other's pods: %s", across(t, name, all, names...).Round(time.Millisecond))
	explains(" in sync")
	setReady(t, pod["east-a"].Name, "False")
	less := maps.Clone(all)
	delete(less, "east-a")
	t.Logf("pod unready → gone in the others: %s", across(t, name, less, names...).Round(time.Millisecond))
	explains("none of its endpoints is ready")
	setReady(t, pod["east-a"].Name, "True")
	across(t, name, all, names...)

	resume := s.stop(t, "east-a")
	lost := maps.Clone(all)
	lost["east-a"] = strings.TrimSuffix(all["east-a"], " ready")
	t.Logf("API gone → not ready in the others: %s", across(t, name, lost, "east-b", "west-a").Round(time.Millisecond))
	resume()
	across(t, name, all, names...)
	if err := inNetwork(t.Context(), "flat", "192.0.2.0/24"); err != nil {
		t.Fatal(err)
	}
	t.Logf("pins that no pod is in → nothing: %s", across(t, name, nil, names...).Round(time.Millisecond))
}

// TestEndpointsOfOthersOff: a federation that is started with --cross-cluster-endpoints=false takes the slices of the one before away, and says so;
// one without the flag brings them back.
func TestEndpointsOfOthersOff(t *testing.T) {
	all := everywhere(t, "across-off")
	t.Cleanup(func() { up(t) })
	for _, run := range []struct {
		flags   []string
		want    map[string]string
		explain string
	}{
		{[]string{"--cross-cluster-endpoints=false"}, nil, "nothing: the federation runs with --cross-cluster-endpoints=false"},
		{nil, all, "   yes     100      in sync"},
	} {
		s.signal(t, syscall.SIGKILL, "federation.pid")
		up(t, run.flags...)
		t.Logf("started with %q → members know %d clusters: %s", run.flags, len(run.want), across(t, "across-off", run.want, names...).Round(time.Millisecond))
		eventually(t, 10*time.Second, func() string {
			if out, err := s.plugin(t, "explain", "service/across-off", "-n", ns); err != nil || !strings.Contains(out, run.explain) {
				return fmt.Sprintf("explain: %v:\n%s", err, out)
			}
			return ""
		})
	}
}

// TestClusterSetIPs: Services that ask get addresses of their own, which their copies bear and keep over an apply, and which are
// free again when the Services are gone.
func TestClusterSetIPs(t *testing.T) {
	services, addresses := s.fed.client.CoreV1().Services(ns), s.fed.client.NetworkingV1().IPAddresses()
	given := map[string]string{}
	for _, name := range []string{"set-a", "set-b"} {
		service := loadBalancer(name)
		service.Annotations = map[string]string{v1beta1.ClusterSetIPAnnotation: v1beta1.ClusterSetIPAuto}
		if _, err := services.Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		remove(t, func(ctx context.Context) error { return services.Delete(ctx, name, background) })
		took := eventually(t, 30*time.Second, func() string {
			federated, err := services.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil || federated.Annotations[v1beta1.ClusterSetIPAnnotation] == v1beta1.ClusterSetIPAuto {
				return fmt.Sprintf("%s has none (%v)", name, err)
			}
			given[name] = federated.Annotations[v1beta1.ClusterSetIPAnnotation]
			return ""
		})
		t.Logf("%s asked → %s: %s", name, given[name], took.Round(time.Millisecond))
	}
	if given["set-a"] == given["set-b"] {
		t.Fatalf("both have %s", given["set-a"])
	}
	if out, err := s.kubectl(t, "", "annotate", "--overwrite", "service", "set-a", v1beta1.ClusterSetIPAnnotation+"=auto"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := s.kubectl(t, "", "annotate", "--overwrite", "service", "set-a", v1beta1.ClusterSetIPAnnotation+"="+given["set-b"]); err != nil || !strings.Contains(out, "only the federation writes addresses") {
		t.Errorf("an address of another's: %v: %s", err, out)
	}
	for _, member := range names {
		eventually(t, 30*time.Second, func() string {
			for name, address := range given {
				copied, err := s.members[member].client.CoreV1().Services(ns).Get(t.Context(), name, metav1.GetOptions{})
				if err != nil || copied.Annotations[v1beta1.ClusterSetIPAnnotation] != address {
					return fmt.Sprintf("%s in %s: %q, %v, want %s", name, member, copied.Annotations[v1beta1.ClusterSetIPAnnotation], err, address)
				}
			}
			return ""
		})
	}
	for name, address := range given {
		if held, err := addresses.Get(t.Context(), address, metav1.GetOptions{}); err != nil || held.Spec.ParentRef.Name != name {
			t.Errorf("IPAddress %s: %v, %v", address, held.Spec.ParentRef, err)
		}
		if err := services.Delete(t.Context(), name, background); err != nil {
			t.Fatal(err)
		}
		eventually(t, 30*time.Second, func() string {
			if _, err := addresses.Get(t.Context(), address, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Sprintf("%s is held still (%v)", address, err)
			}
			return ""
		})
	}
}
