package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	restfake "k8s.io/client-go/rest/fake"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
	crossclusterplan "federation/controllers/crosscluster/plan"
	servicednsplan "federation/controllers/servicedns/plan"
)

// acrossEvidenceOf returns a Service in clusters that have slices of each other: each has the load balancer 192.0.2.N.
func acrossEvidenceOf(t *testing.T, clusters ...*v1beta1.Cluster) evidence {
	t.Helper()
	ingresses := &v1beta1.ServiceIngresses{}
	for i, c := range clusters {
		ingresses.Items = append(ingresses.Items, v1beta1.ClusterServiceIngress{Cluster: c.Name, Items: []corev1.LoadBalancerIngress{{IP: "192.0.2." + string(rune('1'+i))}}})
	}
	o := fromJSON(t, `{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"shop","name":"web","uid":"web-uid"},"spec":{"type":"LoadBalancer","ports":[{"name":"http","protocol":"TCP","port":80}]}}`)
	setIngresses(t, &o.Object, ingresses)
	e := evidenceOf(o, servicesResource, clusters...)
	e.across = &acrossEvidence{slices: map[string]slicesAnswer{}, world: servicednsplan.Input{Federation: "fed", Zone: "example.com.", Explain: true, Offers: true}}
	for _, c := range clusters {
		e.across.world.Clusters = append(e.across.world.Clusters, servicednsplan.ClusterOf(c, nil))
		e.copies[c.Name] = answer{copy: e.desiredNow(c).Object.DeepCopy()}
	}
	e.decideAcross(t)
	for _, c := range clusters {
		e.across.slices[c.Name] = slicesAnswer{slices: e.wanted(t, c.Name)}
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
func (e *evidence) decideAcross(t *testing.T) {
	t.Helper()
	o, err := servicednsplan.Read(e.object, nil)
	if err != nil {
		t.Fatal(err)
	}
	e.across.world.Objects = []servicednsplan.Object{o}
}

// wanted returns the slices that the federation writes into a cluster.
func (e *evidence) wanted(t *testing.T, cluster string) (all []*discoveryv1.EndpointSlice) {
	t.Helper()
	s := &corev1.Service{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(e.copies[cluster].copy.Object, s); err != nil {
		t.Fatal(err)
	}
	for _, op := range crossclusterplan.Operate(crossclusterplan.Input{Member: cluster, Federation: uid, Service: s, Offers: servicednsplan.Records(e.across.world).Offers}) {
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
	e.clusters[1] = clusterAt("east-b", time.Minute)
	e.across.world.Clusters[1].Ready = false
	e.copies["east-b"], e.across.slices["east-b"] = answer{err: errors.New("refused")}, slicesAnswer{err: errors.New("refused")}
	ingresses := *e.across.world.Objects[0].Ingresses
	ingresses.Items[3].Items = nil
	setIngresses(t, &e.object.Object, &ingresses)
	e.decideAcross(t)
	without := func(cluster, name string) {
		a := e.across.slices[cluster]
		a.slices = slices.DeleteFunc(a.slices, func(s *discoveryv1.EndpointSlice) bool { return s.Name == name })
		e.across.slices[cluster] = a
	}
	without("west-a", "web.east-a.v4")
	without("west-b", "web.east-a.v4")
	e.across.events = []corev1.Event{
		eventOf(v1beta1.EventSliceRejected, "web", `west-b: "web.east-a.v4": one that is not the federation's has the name`),
		eventOf(v1beta1.EventMissingPermissions, "west-a", `the nodes here are not told of other clusters: endpointslices.discovery.k8s.io "web.east-a.v4" is forbidden`),
		eventOf(v1beta1.EventMissingPermissions, "east-a", `endpointslices.discovery.k8s.io is forbidden`),
	}
	golden(t, "testdata/explain.across", screen(e, maxRows))
	b, err := json.MarshalIndent(explain(e).Across, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/explain.across.json", string(b)+"\n")
}

func TestStatesOfWhatClustersAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		change func(e *evidence)
		want   string
	}{
		"all is as it is to be": {func(*evidence) {}, "a web.b.v4 in sync, b web.a.v4 in sync"},
		"switched off": {func(e *evidence) { e.across.off = true },
			"a web.b.v4 leaving to be taken away, b web.a.v4 leaving to be taken away"},
		"not known": {func(e *evidence) { e.across.unknown, e.across.world = errors.New("forbidden"), servicednsplan.Input{} },
			"a web.b.v4 in sync, b web.a.v4 in sync"},
		"somebody's Service in a": {func(e *evidence) { e.copies["a"].copy.SetLabels(nil) },
			"a web.b.v4 leaving to be taken away, b web.a.v4 in sync"},
		"a does not let me look": {func(e *evidence) { e.across.slices["a"] = slicesAnswer{err: errors.New("forbidden")} },
			"a  unreadable forbidden, b web.a.v4 in sync"},
		"another weight": {func(e *evidence) {
			e.across.slices["b"].slices[0].Annotations = map[string]string{v1beta1.WeightAnnotation: "7"}
		},
			"a web.b.v4 in sync, b web.a.v4 behind to be written"},
		"one is drained": {func(e *evidence) {
			e.across.world.Clusters[0].Weight = 0
			e.across.slices["b"] = slicesAnswer{slices: e.across.slices["b"].slices}
		}, "a web.b.v4 in sync, b web.a.v4 behind to be written"},
	} {
		t.Run(name, func(t *testing.T) {
			e := acrossEvidenceOf(t, clusterAt("a", 0), clusterAt("b", 0))
			c.change(&e)
			var got []string
			for _, s := range explain(e).Across.Slices {
				got = append(got, strings.TrimSpace(strings.Join([]string{s.Cluster, s.Name, string(s.State), s.Why}, " ")))
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), c.want)
			}
		})
	}
}

// A member that hangs must not cost its timeout twice.
func TestWhoGaveNoAnswerIsNotAskedAgain(t *testing.T) {
	w := newWorld(t)
	w.f.REST = &restfake.RESTClient{NegotiatedSerializer: scheme.Codecs, Client: restfake.CreateHTTPClient(func(r *http.Request) (*http.Response, error) {
		if strings.Contains(r.URL.Path, "/clusters/east-a/") {
			t.Errorf("asked again for %s", r.URL)
		}
		return w.answer(r)
	})}
	e, none := acrossEvidenceOf(t, clusterAt("east-a", 0), clusterAt("west-a", 0)), errors.New("no answer within 3s")
	e.copies["east-a"] = answer{err: none}
	var err error
	if e.across, err = gatherAcross(t.Context(), w.f, &e, client.NewMembers(w.f, time.Second)); err != nil {
		t.Fatal(err)
	}
	if a := e.across; a.unknown != nil || !errors.Is(a.slices["east-a"].err, none) || a.slices["west-a"].err != nil {
		t.Errorf("%v, %+v", a.unknown, a.slices)
	}
}

func TestOnlyServicesTellClustersOfEachOther(t *testing.T) {
	if x := explain(moving(t)); x.Across != nil {
		t.Errorf("%+v", x.Across)
	}
	e := acrossEvidenceOf(t, clusterAt("a", 0), clusterAt("b", 0))
	e.object.Object["spec"].(map[string]any)["type"] = "ClusterIP"
	e.decideAcross(t)
	if text := screen(e, maxRows); !strings.Contains(text, "Nothing is told: type ClusterIP has no records: must be LoadBalancer\n") {
		t.Error(text)
	}
}
