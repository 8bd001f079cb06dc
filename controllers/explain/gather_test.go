package explain

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	metadatafake "k8s.io/client-go/metadata/fake"
	restfake "k8s.io/client-go/rest/fake"
	k8stesting "k8s.io/client-go/testing"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
	"federation/controllers/explain/plan"
)

const frontIngress = `{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"namespace":"shop","name":"front","uid":"front-uid","creationTimestamp":"2026-01-01T11:00:00Z"},"spec":{
	"ingressClassName":"federation","tls":[{"hosts":["www.example.com"],"secretName":"www"}],"rules":[
	{"host":"www.example.com","http":{"paths":[{"path":"/","pathType":"Prefix","backend":{"service":{"name":"web","port":{"number":80}}}},
		{"path":"/old","pathType":"Exact","backend":{"service":{"name":"old","port":{"number":80}}}}]}},
	{"host":"bank.example.org","http":{"paths":[{"path":"/","pathType":"Prefix","backend":{"service":{"name":"web","port":{"number":80}}}}]}}]}}`

const webService = `{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"shop","name":"web","uid":"web-uid"},"spec":{"type":"LoadBalancer","ports":[{"name":"http","protocol":"TCP","port":80}]}}`

func fromJSON(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal([]byte(text), &u.Object); err != nil { // whole numbers are integers, as in what clients read
		t.Fatal(err)
	}
	return u
}

// newFederation returns a federation with two clusters that are ready, and no objects.
func newFederation(t *testing.T) *client.Federation {
	t.Helper()
	s := runtime.NewScheme()
	_ = metav1.AddMetaToScheme(s)
	kinds := map[schema.GroupVersionResource]string{v1beta1.ClustersResource: "ClusterList", v1beta1.PoliciesResource: "PlacementPolicyList", v1beta1.DNSNameGrantsResource: "DNSNameGrantList"}
	for _, k := range v1beta1.FederatedKinds {
		kinds[k.Resource] = k.Kind + "List"
	}
	var clusters []runtime.Object
	for _, name := range []string{"east-a", "west-a"} {
		clusters = append(clusters, fromJSON(t, `{"apiVersion":"federation/v1beta1","kind":"Cluster","metadata":{"name":"`+name+`"},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`))
	}
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "fed"}}
	info := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: v1beta1.FederationNamespace, Name: v1beta1.InfoConfigMap},
		Data: v1beta1.Info{Name: "fed", DNSZone: "example.test", DNSTTL: 15 * time.Second}.ConfigMapData()}
	return &client.Federation{
		Kube: kubefake.NewClientset(system, info), Dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(s, kinds, clusters...),
		Metadata: metadatafake.NewSimpleMetadataClient(s), Namespace: "shop",
	}
}

// A member that gives no answer about a Service is not asked for its slices, too.
func TestWhoGaveNoAnswerIsNotAskedAgain(t *testing.T) {
	f := newFederation(t)
	f.REST = &restfake.RESTClient{NegotiatedSerializer: scheme.Codecs, Client: restfake.CreateHTTPClient(func(r *http.Request) (*http.Response, error) {
		status, text := http.StatusOK, webService
		switch {
		case strings.Contains(r.URL.Path, "/clusters/east-a/") && strings.Contains(r.URL.Path, "endpointslices"):
			t.Errorf("asked again for %s", r.URL)
		case strings.Contains(r.URL.Path, "/clusters/east-a/"):
			status, text = http.StatusServiceUnavailable, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"ServiceUnavailable","code":503}`
		case strings.Contains(r.URL.Path, "endpointslices"):
			text = `{"kind":"EndpointSliceList","apiVersion":"discovery.k8s.io/v1","items":[]}`
		}
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text))}, nil
	})}
	e := plan.Evidence{Object: fromJSON(t, webService), Resource: plan.Services, UID: "fed"}
	for _, name := range []string{"east-a", "west-a"} {
		e.Clusters = append(e.Clusters, &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	s := &sight{user: f, own: f, members: client.NewMembers(f, time.Second)}
	if err := s.askMembers(t.Context(), &e); err != nil {
		t.Fatal(err)
	}
	if a := e.Across; e.Copies["east-a"].Err == nil || a.Slices["east-a"].Err == nil || e.Copies["west-a"].Copy == nil || a.Slices["west-a"].Err != nil {
		t.Errorf("%+v, %+v", e.Copies, a.Slices)
	}
}

// TestExplainAnIngressOfOnesOwn: who may read only their own namespace sees what that leaves open, and nothing that is wrong.
func TestExplainAnIngressOfOnesOwn(t *testing.T) {
	f := newFederation(t)
	for r, text := range map[string]string{"ingresses": frontIngress, "services": webService} {
		of := map[string]schema.GroupVersionResource{"ingresses": plan.Ingresses, "services": plan.Services}[r]
		if _, err := f.Dynamic.Resource(of).Namespace("shop").Create(t.Context(), fromJSON(t, text), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	refuse := func(a k8stesting.Action) (bool, runtime.Object, error) {
		if a.GetNamespace() == "shop" || a.GetNamespace() == "kube-system" {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", nil)
	}
	for _, r := range []string{"ingresses", "dnsnamegrants", "configmaps", "leases"} {
		f.Dynamic.(*dynamicfake.FakeDynamicClient).PrependReactor("*", r, refuse)
		f.Kube.(*kubefake.Clientset).PrependReactor("*", r, refuse)
	}
	e := &plan.Evidence{Object: fromJSON(t, frontIngress), Resource: plan.Ingresses}
	r, err := (&sight{user: f, own: newFederation(t)}).gatherRoutes(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	e.Routes = r
	x := plan.Explain(*e).Routes
	if len(x.Unknown) != 3 || len(x.Routes) == 0 || len(x.LoadBalancers) > 0 {
		t.Errorf("not known %q, routes %v", x.Unknown, x.Routes)
	}
	for _, problem := range x.Problems {
		if !strings.Contains(problem, "Secret www") && !strings.Contains(problem, "Service old") {
			t.Errorf("a problem that nobody knows of: %s", problem)
		}
	}
}

// TestWhatStaysAtTheFederation: a quota is no custom kind that a join could allow.
func TestWhatStaysAtTheFederation(t *testing.T) {
	for _, test := range []struct{ resource, group, namespace, name, says string }{
		{"resourcequotas", "", "default", "q", "resourcequotas stay at the federation"}, {"roles", "rbac.authorization.k8s.io", "default", "r", "stay at the federation"},
		{"placementpolicies", "federation", "default", "p", "placementpolicies.federation stay"}, {"clusters", "federation", "", "east-a", "stay at the federation"},
		{"configmaps", "", "federation-system", "c", `configmaps "c" stays at the federation`}, {"configmaps", "", "default", "c", ""},
		{"pods", "", "default", "web-x.east-a", "pods are the clusters' own"}, {"nodes", "", "", "n1.east-a", "kubectl describe node n1.east-a"},
		{"widgets", "example.com", "default", "w", ""}, {"gateways", "gateway.networking.k8s.io", "default", "g", ""},
		{"customresourcedefinitions", "apiextensions.k8s.io", "", "widgets.example.com", ""},
	} {
		got := staysAtFederation(schema.GroupVersionResource{Group: test.group, Version: "v1", Resource: test.resource}, test.namespace, test.name)
		if (got == "") != (test.says == "") || !strings.Contains(got, test.says) {
			t.Errorf("%s: %q, want %q", test.resource, got, test.says)
		}
	}
}

// TestWhyNoNames: a mistyped name is distinguished from an object that has no names.
func TestWhyNoNames(t *testing.T) {
	f := newFederation(t)
	if _, err := f.Dynamic.Resource(plan.Services).Namespace("shop").Create(t.Context(), fromJSON(t, webService), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string]string{"web": "service web has no names in DNS: no cluster has a load balancer", "wbe": `services "wbe" not found in namespace shop`} {
		if err := WhyNoNames(t.Context(), f, "Service", "shop", name, "example.test."); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
