package plan

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"federation/apiserver/apis/federation/v1beta1"
	crossclusterplan "federation/controllers/crosscluster/plan"
	servicednsplan "federation/controllers/servicedns/plan"
)

// acrossEvidenceOf returns a Service in clusters that have slices of each other: each has the load balancer 192.0.2.N.
func acrossEvidenceOf(t *testing.T, clusters ...*v1beta1.Cluster) Evidence {
	t.Helper()
	ingresses := &v1beta1.ServiceIngresses{}
	for i, c := range clusters {
		ingresses.Items = append(ingresses.Items, v1beta1.ClusterServiceIngress{Cluster: c.Name, Items: []corev1.LoadBalancerIngress{{IP: "192.0.2." + string(rune('1'+i))}}})
	}
	o := fromJSON(t, `{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"shop","name":"web","uid":"web-uid"},"spec":{"type":"LoadBalancer","ports":[{"name":"http","protocol":"TCP","port":80}]}}`)
	setIngresses(t, &o.Object, ingresses)
	e := evidenceOf(o, Services, clusters...)
	e.Across = &AcrossEvidence{Slices: map[string]SlicesAnswer{}, World: servicednsplan.Input{Federation: "fed", Zone: "example.com.", Explain: true, Offers: true}}
	for _, c := range clusters {
		e.Across.World.Clusters = append(e.Across.World.Clusters, servicednsplan.ClusterOf(c, nil))
		e.Copies[c.Name] = CopyAnswer{Copy: e.desiredNow(c).Object.DeepCopy()}
	}
	e.decideAcross(t)
	for _, c := range clusters {
		e.Across.Slices[c.Name] = SlicesAnswer{Slices: e.wanted(t, c.Name)}
	}
	return e
}

func setIngresses(t *testing.T, object *map[string]any, i *v1beta1.ServiceIngresses) {
	t.Helper()
	b, err := json.Marshal(i)
	if err != nil {
		t.Fatal(err)
	}
	(*object)["metadata"].(map[string]any)["annotations"] = map[string]any{v1beta1.ServiceIngressesAnnotation: string(b)}
}

// decideAcross makes the offers follow the Service.
func (e *Evidence) decideAcross(t *testing.T) {
	t.Helper()
	o, err := servicednsplan.Read(e.Object, nil)
	if err != nil {
		t.Fatal(err)
	}
	e.Across.World.Objects = []servicednsplan.Object{o}
}

// wanted returns the slices that the federation writes into a cluster.
func (e *Evidence) wanted(t *testing.T, cluster string) (all []*discoveryv1.EndpointSlice) {
	t.Helper()
	s := &corev1.Service{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(e.Copies[cluster].Copy.Object, s); err != nil {
		t.Fatal(err)
	}
	for _, op := range crossclusterplan.Operate(crossclusterplan.Input{Member: cluster, Federation: uid, Service: s, Offers: servicednsplan.Records(e.Across.World).Offers}) {
		all = append(all, op.Slice)
	}
	return all
}

func eventOf(reason, object, message string) corev1.Event {
	return corev1.Event{Reason: reason, Message: message, InvolvedObject: corev1.ObjectReference{Name: object}}
}

// TestExplainWhatClustersAreToldOfEachOther covers a lost cluster, one without a ready endpoint, one that lets nobody
// write, and one in which a name is taken.
func TestExplainWhatClustersAreToldOfEachOther(t *testing.T) {
	e := acrossEvidenceOf(t, clusterAt("east-a", 0), clusterAt("east-b", 0), clusterAt("west-a", 0), clusterAt("west-b", 0))
	e.Clusters[1] = clusterAt("east-b", time.Minute)
	e.Across.World.Clusters[1].Ready = false
	e.Copies["east-b"], e.Across.Slices["east-b"] = CopyAnswer{Err: errors.New("refused")}, SlicesAnswer{Err: errors.New("refused")}
	ingresses := *e.Across.World.Objects[0].Ingresses
	ingresses.Items[3].Items = nil
	setIngresses(t, &e.Object.Object, &ingresses)
	e.decideAcross(t)
	without := func(cluster, name string) {
		a := e.Across.Slices[cluster]
		a.Slices = slices.DeleteFunc(a.Slices, func(s *discoveryv1.EndpointSlice) bool { return s.Name == name })
		e.Across.Slices[cluster] = a
	}
	without("west-a", "web.east-a.v4")
	without("west-b", "web.east-a.v4")
	e.Across.Events = []corev1.Event{
		eventOf(v1beta1.EventSliceRejected, "web", `west-b: "web.east-a.v4": one that is not the federation's has the name`),
		eventOf(v1beta1.EventMissingPermissions, "west-a", `endpoints of other clusters cannot be written: endpointslices.discovery.k8s.io "web.east-a.v4" is forbidden`),
		eventOf(v1beta1.EventMissingPermissions, "east-a", `endpointslices.discovery.k8s.io is forbidden`),
	}
	goldenJSON(t, "testdata/across.json", Explain(e))
}

func TestStatesOfWhatClustersAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		change func(e *Evidence)
		want   string
	}{
		"all is as it is to be": {func(*Evidence) {}, "a web.b.v4 in sync, b web.a.v4 in sync"},
		"switched off": {func(e *Evidence) { e.Across.Off = true },
			"a web.b.v4 leaving to be taken away, b web.a.v4 leaving to be taken away"},
		"not known": {func(e *Evidence) { e.Across.Unknown, e.Across.World = errors.New("forbidden"), servicednsplan.Input{} },
			"a web.b.v4 in sync, b web.a.v4 in sync"},
		"somebody's Service in a": {func(e *Evidence) { e.Copies["a"].Copy.SetLabels(nil) },
			"a web.b.v4 leaving to be taken away, b web.a.v4 in sync"},
		"a does not let me look": {func(e *Evidence) { e.Across.Slices["a"] = SlicesAnswer{Err: errors.New("forbidden")} },
			"a  unreadable forbidden, b web.a.v4 in sync"},
		"another weight": {func(e *Evidence) {
			e.Across.Slices["b"].Slices[0].Annotations = map[string]string{v1beta1.WeightAnnotation: "7"}
		},
			"a web.b.v4 in sync, b web.a.v4 behind to be written"},
		"one is drained": {func(e *Evidence) {
			e.Across.World.Clusters[0].Weight = 0
			e.Across.Slices["b"] = SlicesAnswer{Slices: e.Across.Slices["b"].Slices}
		}, "a web.b.v4 in sync, b web.a.v4 behind to be written"},
	} {
		t.Run(name, func(t *testing.T) {
			e := acrossEvidenceOf(t, clusterAt("a", 0), clusterAt("b", 0))
			c.change(&e)
			var got []string
			for _, s := range Explain(e).CrossCluster.Slices {
				got = append(got, strings.TrimSpace(strings.Join([]string{s.Cluster, s.Name, string(s.State), s.Why}, " ")))
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), c.want)
			}
		})
	}
}

func TestOnlyServicesTellClustersOfEachOther(t *testing.T) {
	if x := Explain(moving(t)); x.CrossCluster != nil {
		t.Errorf("%+v", x.CrossCluster)
	}
	e := acrossEvidenceOf(t, clusterAt("a", 0), clusterAt("b", 0))
	e.Object.Object["spec"].(map[string]any)["type"] = "ExternalName"
	for _, state := range []string{"reported", "new"} {
		if state == "new" {
			e.Object.SetAnnotations(nil)
		}
		e.decideAcross(t)
		if x := Explain(e).CrossCluster; len(x.Untold) != 1 || x.Untold[0] != (v1beta1.UntoldCluster{Why: "a Service of type ExternalName has no endpoints for other clusters"}) {
			t.Errorf("%s: %+v", state, x.Untold)
		}
	}
}

// TestExplainPodsOfOtherClusters: a Service without load balancers, of which cluster a has a ready pod.
func TestExplainPodsOfOtherClusters(t *testing.T) {
	for name, c := range map[string]struct {
		change func(e *Evidence)
		want   string
	}{
		"equal networks": {func(*Evidence) {}, "b web.a.v4 missing to be written; b: none of its endpoints is ready"},
		"no networks": {func(e *Evidence) { e.Across.World.Clusters[0].Network, e.Across.World.Clusters[1].Network = "", "" },
			"no two clusters are in one network (spec.network of Clusters), and the Service is not exported"},
		"exported": {func(e *Evidence) {
			e.Across.World.Clusters[0].Network = ""
			answer := e.Across.Slices["a"]
			answer.Balancers = []*corev1.Service{{Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}}}}}
			e.Across.Slices["a"] = answer
		}, "b web.a.v4 missing to be written; b: no other cluster is in the network of its pods (spec.network of the Cluster), and the Service is not exported there"},
		"headless": {func(e *Evidence) {
			for _, u := range []*unstructured.Unstructured{e.Object, e.Copies["a"].Copy, e.Copies["b"].Copy} {
				u.Object["spec"].(map[string]any)["clusterIP"] = "None"
			}
		}, "a headless Service has no address that could lead to other clusters"},
		"a cannot be read": {func(e *Evidence) { e.Across.Slices["a"] = SlicesAnswer{Err: errors.New("forbidden")} },
			"a  unreadable forbidden; b: none of its endpoints is ready"},
		"switched off": {func(e *Evidence) { e.Across.Off = true }, ""},
		"not known":    {func(e *Evidence) { e.Across.Unknown, e.Across.World = errors.New("forbidden"), servicednsplan.Input{} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := acrossEvidenceOf(t, clusterAt("a", 0), clusterAt("b", 0))
			e.Object.Object["spec"].(map[string]any)["type"] = "ClusterIP"
			e.Object.SetAnnotations(nil)
			e.decideAcross(t)
			e.Across.World.Clusters[0].Network, e.Across.World.Clusters[1].Network = "n", "n"
			e.Across.Slices["b"] = SlicesAnswer{}
			e.Across.Slices["a"] = SlicesAnswer{Own: []*discoveryv1.EndpointSlice{{AddressType: discoveryv1.AddressTypeIPv4,
				Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080))}}, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}}}}}
			c.change(&e)
			var got []string
			x := Explain(e).CrossCluster
			for _, s := range x.Slices {
				got = append(got, strings.TrimSpace(strings.Join([]string{s.Cluster, s.Name, string(s.State), s.Why}, " ")))
			}
			for _, u := range x.Untold {
				got = append(got, strings.TrimPrefix(u.Cluster+": "+u.Why, ": "))
			}
			if strings.Join(got, "; ") != c.want {
				t.Errorf("got  %s\nwant %s", strings.Join(got, "; "), c.want)
			}
		})
	}
}
