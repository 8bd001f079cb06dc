package fleettest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"federation/apiserver/apis/federation/v1beta1"
	propagationplan "federation/controllers/propagation/plan"
	servicednsplan "federation/controllers/servicedns/plan"
	placement "federation/scheduler"
)

// many are a thousand clusters with names of so many bytes.
func many(length int) (clusters []*v1beta1.Cluster) {
	for i := range 1000 {
		c := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%04d-eu-central-1-production-%s", i, strings.Repeat("x", 63))[:length]}}
		c.Status.Conditions = []v1beta1.ClusterCondition{{Type: v1beta1.ClusterReady, Status: corev1.ConditionTrue}}
		c.Status.Region, c.Status.Zones = "eu-central-1", []string{fmt.Sprintf("z%d", i%3)}
		c.Status.Failover = &v1beta1.ClusterFailover{Phase: v1beta1.PhaseServing}
		clusters = append(clusters, c)
	}
	return clusters
}

// ofUser are annotations that a user has written.
func ofUser(bytes int) string { return strings.Repeat("u", bytes) }

func object(t *testing.T, text string, user int) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	u.SetNamespace("default")
	u.SetAnnotations(map[string]string{"example.com/of-the-user": ofUser(user)})
	return u
}

func annotated(u *unstructured.Unstructured, key, value string) {
	all := u.GetAnnotations()
	all[key] = value
	u.SetAnnotations(all)
}

// fits checks that the API takes the object's annotations, and returns how many bytes they have.
func fits(t *testing.T, u *unstructured.Unstructured) (n int) {
	t.Helper()
	for key, value := range u.GetAnnotations() {
		n += len(key) + len(value)
	}
	if n > 256<<10 {
		t.Errorf("%d bytes of annotations, and 262144 are allowed", n)
	}
	return n
}

// decided decides twice: with all clusters, and with one lost, so that the placement remembers where all was.
func decided(t *testing.T, u *unstructured.Unstructured, policies []*v1beta1.PlacementPolicy, clusters []*v1beta1.Cluster) {
	t.Helper()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 2 {
		for range 2 {
			o, err := placement.Read(u)
			if err != nil {
				t.Fatal(err)
			}
			d := placement.Decide(o, placement.NewWorld(clusters, policies), now)
			if d.None || d.Wait {
				t.Fatalf("nothing is decided: %+v", d.Reasons)
			}
			annotated(u, v1beta1.PlacementAnnotation, d.Value())
		}
		at := metav1.NewTime(now)
		lost := clusters[0].DeepCopy()
		lost.Status.Conditions[0].Status = corev1.ConditionFalse
		lost.Status.Failover = &v1beta1.ClusterFailover{Phase: v1beta1.PhaseFailedOver, LostAt: &at}
		clusters = append([]*v1beta1.Cluster{lost}, clusters[1:]...)
	}
}

const manyPolicy = `apiVersion: federation/v1beta1
kind: PlacementPolicy
metadata: {name: all, namespace: default}
spec:
  resourceSelectors: [{apiVersion: v1, kind: Service}, {apiVersion: apps/v1, kind: Deployment}]
  failover: {}
`

// TestDecisionsFitIntoAnnotations: what is decided about one object and a thousand clusters never grows beyond what the API takes, for then
// nothing would be written any more. Details are left out first; DNS has all clusters that serve for as long as can be.
func TestDecisionsFitIntoAnnotations(t *testing.T) {
	for name, c := range map[string]struct {
		length, hosts, user int // bytes of a cluster's name, host names in each, bytes of the user's annotations
		family              string
		clusters, addresses int // that DNS has at least
		left                bool
	}{
		"one host name":                    {30, 1, 2 << 10, "host", 1000, 1000, false},
		"two host names":                   {30, 2, 2 << 10, "host", 1000, 1000, true},
		"sixteen host names":               {30, 16, 2 << 10, "host", 1000, 1000, true},
		"two addresses":                    {30, 2, 2 << 10, "ip", 1000, 2000, false},
		"sixteen addresses":                {30, 16, 2 << 10, "ip", 1000, 2000, true},
		"the longest names":                {63, 1, 2 << 10, "host", 1000, 1000, false},
		"a user who has much to say":       {30, 1, 64 << 10, "host", 1000, 1000, false},
		"the longest, and sixteen of them": {63, 16, 2 << 10, "host", 1000, 1000, true},
		"a user who leaves hardly any":     {30, 1, 170 << 10, "host", 250, 250, true},
		"a user who leaves none for that":  {30, 1, 214 << 10, "host", 0, 0, true},
		"a user who leaves none at all":    {30, 1, 262144 - 38000, "host", 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := many(c.length)
			policy := &v1beta1.PlacementPolicy{}
			if err := yaml.Unmarshal([]byte(manyPolicy), policy); err != nil {
				t.Fatal(err)
			}
			u := object(t, "{apiVersion: v1, kind: Service, metadata: {name: web, generation: 1, uid: x}, spec: {type: LoadBalancer, ports: [{name: http, port: 80}, {name: https, port: 443}, {name: admin, port: 8443}]}}", c.user)
			decided(t, u, []*v1beta1.PlacementPolicy{policy}, clusters)
			kind := kindOfPropagation(t, "Service")
			for range 2 {
				s := propagationplan.Summarize(kind, u, loadBalanced(clusters, c.hosts, c.family), "2026-01-02T00:00:00Z")
				if body, _ := json.Marshal(s.Patch()); len(body) > 1<<20 {
					t.Errorf("the patch has %d bytes", len(body))
				}
				if text, ok := s.Annotations[v1beta1.ServiceIngressesAnnotation].(string); ok {
					annotated(u, v1beta1.ServiceIngressesAnnotation, text)
				}
			}
			n := fits(t, u)
			ingresses := v1beta1.ParseServiceIngresses(u.GetAnnotations()[v1beta1.ServiceIngressesAnnotation])
			addresses := 0
			for _, item := range ingresses.Items {
				addresses += len(item.Items)
			}
			t.Logf("%d bytes, %d clusters, %d addresses, left out %+v", n, len(ingresses.Items), addresses, ingresses.Omitted)
			if len(ingresses.Items) < c.clusters || addresses < c.addresses || c.left != (ingresses.Omitted != nil) && c.clusters > 0 {
				t.Errorf("%d clusters, %d addresses, left out %+v", len(ingresses.Items), addresses, ingresses.Omitted)
			}
			toldInDNS(t, u, clusters, ingresses.Omitted != nil)
		})
	}
}

func kindOfPropagation(t *testing.T, name string) *propagationplan.Kind {
	kinds := propagationplan.Kinds
	for i := range kinds {
		if kinds[i].Kind == name {
			return &kinds[i]
		}
	}
	t.Fatalf("there is no kind %s", name)
	return nil
}

// loadBalanced are copies of a Service that serve, each at so many addresses.
func loadBalanced(clusters []*v1beta1.Cluster, addresses int, family string) (copies []propagationplan.Copy) {
	for i, c := range clusters {
		var list []any
		for n := range addresses {
			one := map[string]any{"ip": fmt.Sprintf("203.0.%d.%d", i/4, i%4*16+n)}
			if family == "host" {
				one = map[string]any{"hostname": fmt.Sprintf("k8s-default-web-%010d-%016d.elb.eu-central-1.amazonaws.com", n, i)}
			}
			one["ports"] = []any{map[string]any{"port": int64(80), "protocol": "TCP"}, map[string]any{"port": int64(443), "protocol": "TCP"}}
			list = append(list, one)
		}
		copies = append(copies, propagationplan.Copy{Cluster: c.Name, State: propagationplan.Synced, ReadyEndpoints: true, Object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "web", "namespace": "default"},
			"status": map[string]any{"loadBalancer": map[string]any{"ingress": list}},
		}}})
	}
	return copies
}

// toldInDNS checks that DNS goes by what is there, and that people are told what is left out.
func toldInDNS(t *testing.T, u *unstructured.Unstructured, clusters []*v1beta1.Cluster, left bool) {
	t.Helper()
	o, err := servicednsplan.Read(u, nil)
	if err != nil {
		t.Fatal(err)
	}
	in := servicednsplan.Input{Federation: "fed", Zone: zone, TTL: 15, Objects: []servicednsplan.Object{o}}
	for _, c := range clusters {
		in.Clusters = append(in.Clusters, servicednsplan.ClusterOf(c, nil))
	}
	told := false
	for _, r := range servicednsplan.Records(in).Reasons {
		told = told || r.Code == servicednsplan.AddressesOmitted
	}
	if told != left {
		t.Errorf("that something is left out is told: %v, and it is so: %v", told, left)
	}
}

// TestPlacementsFitIntoAnnotations is about objects whose replicas are divided.
func TestPlacementsFitIntoAnnotations(t *testing.T) {
	for _, length := range []int{30, 63} {
		clusters := many(length)
		u := object(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, generation: 1, uid: x}, spec: {replicas: 20000, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}}}}", 16<<10)
		policy := &v1beta1.PlacementPolicy{}
		if err := yaml.Unmarshal([]byte(manyPolicy), policy); err != nil {
			t.Fatal(err)
		}
		decided(t, u, []*v1beta1.PlacementPolicy{policy}, clusters)
		var copies []propagationplan.Copy
		for _, c := range clusters {
			copies = append(copies, propagationplan.Copy{Cluster: c.Name, State: propagationplan.Synced, Unmade: 5, Object: &unstructured.Unstructured{Object: map[string]any{
				"spec": map[string]any{"replicas": int64(20)}, "status": map[string]any{"replicas": int64(15)},
			}}})
		}
		s := propagationplan.Summarize(kindOfPropagation(t, "Deployment"), u, copies, "2026-01-02T00:00:00Z")
		if text, ok := s.Annotations[v1beta1.CreatedPodsAnnotation].(string); ok {
			annotated(u, v1beta1.CreatedPodsAnnotation, text)
		}
		n := fits(t, u)
		p := v1beta1.ParsePlacement(u.GetAnnotations()[v1beta1.PlacementAnnotation])
		t.Logf("names of %d bytes: %d bytes, placed on %d, home of %d, pods made in %d", length, n, len(p.Clusters), len(p.Home), len(v1beta1.ParseCreatedPods(u.GetAnnotations()[v1beta1.CreatedPodsAnnotation])))
		if len(p.Clusters) != 999 || len(p.Home) != 1000 {
			t.Errorf("placed on %d clusters, home of %d", len(p.Clusters), len(p.Home))
		}
	}
}
