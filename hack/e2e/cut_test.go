package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
)

const beyond = "east-b" // the member behind the wire

// behindWire has the federation reach a member through a wire, until the end of the test; or the member's agent the federation.
func behindWire(t *testing.T) *wire {
	t.Helper()
	if pullMode {
		w := newWire(t, strings.TrimPrefix(s.fed.config.Host, "https://"))
		pull(t, beyond, "--server=https://"+w.Addr().String())
		applyConfigMap(t, probe(t))
		copies(t, probe(t), names...)
		clusterReady(t, beyond, corev1.ConditionTrue)
		return w
	}
	clusters := s.fed.dyn.Resource(v1beta1.ClustersResource)
	u, err := clusters.Get(t.Context(), beyond, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := unstructured.NestedSlice(u.Object, "spec", "serverAddressByClientCIDRs")
	address, _, _ := unstructured.NestedString(before[0].(map[string]any), "serverAddress")
	w := newWire(t, address)
	point := func(ctx context.Context, addresses any) error {
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"serverAddressByClientCIDRs": addresses}})
		if err != nil {
			return err
		}
		_, err = clusters.Patch(ctx, beyond, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
	if err := point(t.Context(), []map[string]string{{"clientCIDR": "0.0.0.0/0", "serverAddress": w.Addr().String()}}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return point(ctx, before) })
	applyConfigMap(t, probe(t)) // it gets there when the federation has connected anew
	copies(t, probe(t), names...)
	return w
}

// probe is the name of the ConfigMap that shows what goes through the wire.
func probe(t *testing.T) string { return "wire-" + strings.ToLower(t.Name()) }

// ready is the Ready condition of the member behind the wire. It differs when it has changed.
func ready(t *testing.T) map[string]any {
	t.Helper()
	u, err := s.fed.dyn.Resource(v1beta1.ClustersResource).Get(t.Context(), beyond, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if c := c.(map[string]any); c["type"] == "Ready" {
			return c
		}
	}
	t.Fatal("no condition Ready")
	return nil
}

// stays watches for a while that the cluster stays ready as it is.
func stays(t *testing.T, was map[string]any, long time.Duration) {
	t.Helper()
	for end := time.Now().Add(long); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if is := ready(t); is["status"] != "True" || is["lastTransitionTime"] != was["lastTransitionTime"] {
			t.Fatalf("it changed: %v, was %v", is, was)
		}
	}
}

// data waits until a ConfigMap has a value in members.
func data(t *testing.T, name, want string, members ...string) time.Duration {
	t.Helper()
	return eventually(t, 60*time.Second, func() string {
		for _, member := range members {
			c, err := s.members[member].client.CoreV1().ConfigMaps(ns).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil || c.Data["key"] != want {
				return fmt.Sprintf("%s in %s: %v %v, want %s", name, member, err, c.Data, want)
			}
		}
		return ""
	})
}

func change(t *testing.T, c cluster, name, value string) {
	t.Helper()
	patch := []byte(`{"data":{"key":"` + value + `"}}`)
	if _, err := c.client.CoreV1().ConfigMaps(ns).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// named waits until the global name of a Service has the addresses of these members and no others.
func named(t *testing.T, service string, members ...string) time.Duration {
	t.Helper()
	host := strings.Join([]string{service, ns, s.env["FEDERATION_NAME"], "svc", s.env["DNS_ZONE"]}, ".")
	return eventually(t, 60*time.Second, func() string {
		var want []string
		for _, member := range members {
			svc, err := s.members[member].client.CoreV1().Services(ns).Get(t.Context(), service, metav1.GetOptions{})
			if err != nil || len(svc.Status.LoadBalancer.Ingress) == 0 {
				return fmt.Sprintf("Service %s in %s: %v, no address", service, member, err)
			}
			want = append(want, svc.Status.LoadBalancer.Ingress[0].IP)
		}
		_, got := s.lookup(t, host, dns.TypeA)
		slices.Sort(want)
		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Sprintf("%s is %v, want %v", host, got, want)
		}
		return ""
	})
}

// TestACutNetwork cuts a member off without a word, and heals it, with everything on the way having
// forgotten the connections of before.
func TestACutNetwork(t *testing.T) {
	w := behindWire(t)
	sets, services := s.fed.client.AppsV1().ReplicaSets(ns), s.fed.client.CoreV1().Services(ns)
	if _, err := sets.Create(t.Context(), replicaSet("cut", 6, nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return sets.Delete(ctx, "cut", background) })
	if _, err := services.Create(t.Context(), loadBalancer("cut"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return services.Delete(ctx, "cut", background) })
	applyConfigMap(t, "cut-changed")
	applyConfigMap(t, "cut-deleted")
	copies(t, "cut-deleted", names...)
	named(t, "cut", names...)

	w.sever()
	cut := time.Now()
	applyConfigMap(t, "cut-new")
	change(t, s.fed, "cut-changed", "changed")
	if err := s.fed.client.CoreV1().ConfigMaps(ns).Delete(t.Context(), "cut-deleted", background); err != nil {
		t.Fatal(err)
	}
	copies(t, "cut-new", "east-a", "west-a")
	data(t, "cut-changed", "changed", "east-a", "west-a")
	t.Logf("the other members had everything %.1f s after the cut", time.Since(cut).Seconds())
	clusterReady(t, beyond, corev1.ConditionFalse)
	t.Logf("marked %.1f s after the cut", time.Since(cut).Seconds())
	named(t, "cut", "east-a", "west-a")
	t.Logf("out of DNS %.1f s after the cut", time.Since(cut).Seconds())
	copies(t, "cut-deleted", beyond) // the others delete at once

	w.heal(true)
	healed := time.Now()
	clusterReady(t, beyond, corev1.ConditionTrue)
	t.Logf("ready %.1f s after it was healed", time.Since(healed).Seconds())
	copies(t, "cut-new", names...)
	copies(t, "cut-deleted")
	data(t, "cut-changed", "changed", names...)
	t.Logf("right %.1f s after it was healed", time.Since(healed).Seconds())
	named(t, "cut", names...)
	t.Logf("in DNS %.1f s after it was healed", time.Since(healed).Seconds())
}

// TestAShortCutChangesNothing: neither one after which all goes on, nor one that silently ends every
// connection, after which watches are back without that anybody tells us.
func TestAShortCutChangesNothing(t *testing.T) {
	w := behindWire(t)
	time.Sleep(time.Second) // to have another time of transition, were there one
	for _, forget := range []bool{false, true} {
		was := ready(t)
		w.sever()
		time.Sleep(time.Second)
		w.heal(forget)
		stays(t, was, 5*time.Second)
		healed := time.Now()
		change(t, s.members[beyond], probe(t), "drifted")
		t.Logf("connections forgotten %t: drift was put right after %.1f s", forget, data(t, probe(t), "value", beyond).Seconds())
		stays(t, was, time.Second)
		atMost(t, "watches are back after", time.Since(healed), time.Minute)
	}
}

// TestASlowMemberDelaysNobody: 600 ms from question to answer are a long way, not a fault.
func TestASlowMemberDelaysNobody(t *testing.T) {
	w := behindWire(t)
	was := ready(t)
	w.setLatency(300 * time.Millisecond)
	time.Sleep(time.Second)
	began := time.Now()
	for i := range 20 {
		applyConfigMap(t, fmt.Sprintf("slow-%d", i))
	}
	for i := range 20 {
		data(t, fmt.Sprintf("slow-%d", i), "value", "east-a", "west-a")
	}
	others := time.Since(began)
	stays(t, was, 4*time.Second)
	copies(t, "slow-19", names...)
	t.Logf("20 objects: the others had them after %.2f s, the slow one after at most %.2f s", others.Seconds(), time.Since(began).Seconds())
	w.setLatency(0)
	stays(t, was, time.Second)
}
