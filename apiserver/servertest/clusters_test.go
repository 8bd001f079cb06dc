package servertest

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
)

func TestClustersAreShownWithTheirState(t *testing.T) {
	newCluster(t, "shown", "192.0.2.7:6443")
	clusters := shared.dynamic.Resource(v1beta1.ClustersResource)
	patch := `{"spec":{"secretRef":{"name":"ignored"}},"status":{"region":"east","zones":["a","b"],"kubernetesVersion":"v1.36.3","conditions":[{"type":"Ready","status":"True"}]}}`
	if _, err := clusters.Patch(t.Context(), "shown", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	body, err := shared.kube.CoreV1().RESTClient().Get().AbsPath("/apis/federation/v1beta1/clusters/shown").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	table := metav1.Table{}
	if err := json.Unmarshal(body, &table); err != nil {
		t.Fatal(err)
	}
	row := fmt.Sprint(table.Rows[0].Cells...)
	if want := fmt.Sprint("shown", "True", "east", "a,b", "v1.36.3"); !strings.HasPrefix(row, want) || !strings.HasSuffix(row, "192.0.2.7:6443") {
		t.Errorf("row %q, want %q, the age, and the address", row, want)
	}
	c, err := clusters.Get(t.Context(), "shown", metav1.GetOptions{})
	if err != nil || strings.Contains(fmt.Sprint(c.Object["spec"]), "ignored") {
		t.Errorf("a write of the status changed the spec: %v %v", c.Object["spec"], err)
	}
}

func newCluster(t *testing.T, name, address string) {
	t.Helper()
	object := fmt.Sprintf(`{apiVersion: federation/v1beta1, kind: Cluster, metadata: {name: %s}, spec: {serverAddressByClientCIDRs: [{clientCIDR: 0.0.0.0/0, serverAddress: "%s"}], secretRef: {name: %s}}}`, name, address, name)
	if err := create(t, "federation/v1beta1/clusters", object); err != nil {
		t.Fatal(err)
	}
}

func TestOpenAPIHasOurTypes(t *testing.T) {
	for path, want := range map[string]string{"/openapi/v3/apis/federation/v1beta1": `"federation.v1beta1.ClusterSpec"`, "/openapi/v2": `"federation.v1beta1.Cluster"`} {
		body, err := shared.kube.Discovery().RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").DoRaw(t.Context())
		if err != nil || !strings.Contains(string(body), want) {
			t.Errorf("%s lacks %s (%v)", path, want, err)
		}
	}
}

// member is a member's API that records its requests.
func member(t *testing.T, asked *http.Request) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = *r
		if r.URL.Path == "/elsewhere" {
			http.Redirect(w, r, "https://192.0.2.1/", http.StatusFound)
			return
		}
		fmt.Fprintln(w, `{"from":"member"}`)
	}))
	t.Cleanup(server.Close)
	return server
}

func TestProxySpeaksToTheMemberAsTheCaller(t *testing.T) {
	var asked http.Request
	server := member(t, &asked)
	newCluster(t, "proxied", strings.TrimPrefix(server.URL, "https://"))
	newMemberSecret(t, "proxied", server, `token: member-token`)
	get := func(path string) ([]byte, error) {
		return shared.kube.CoreV1().RESTClient().Get().AbsPath("/apis/federation/v1beta1/clusters/proxied/proxy"+path).
			Param("limit", "5").DoRaw(t.Context())
	}
	body, err := get("/api/v1/pods")
	if err != nil || !strings.Contains(string(body), "member") {
		t.Fatalf("%s, %v", body, err)
	}
	if asked.URL.Path != "/api/v1/pods" || asked.URL.Query().Get("limit") != "5" {
		t.Errorf("the member was asked for %s", asked.URL)
	}
	if h := asked.Header; h.Get("Authorization") != "Bearer member-token" || h.Get("Impersonate-User") != "federation-admin" || h.Get("Impersonate-Group") == "" {
		t.Errorf("the member was asked with %v", h)
	}
	if body, err := get("/elsewhere"); err == nil {
		t.Errorf("a redirect was followed or passed on: %s", body)
	}
}

// TestInspectReadsAsTheFederation: once, and in nobody's name.
func TestInspectReadsAsTheFederation(t *testing.T) {
	var asked http.Request
	server := member(t, &asked)
	newCluster(t, "inspected", strings.TrimPrefix(server.URL, "https://"))
	newMemberSecret(t, "inspected", server, `token: member-token`)
	request := func(verb string) *rest.Request {
		return shared.kube.CoreV1().RESTClient().Verb(verb).AbsPath("/apis/federation/v1beta1/clusters/inspected/inspect/api/v1/pods")
	}
	body, err := request("GET").SetHeader("Impersonate-User", "federation-admin").SetHeader("Impersonate-Group", "system:masters").DoRaw(t.Context())
	if err != nil || !strings.Contains(string(body), "member") {
		t.Fatalf("%s, %v", body, err)
	}
	if h := asked.Header; h.Get("Authorization") != "Bearer member-token" || h.Get("Impersonate-User") != "" || h.Get("Impersonate-Group") != "" || asked.URL.Path != "/api/v1/pods" {
		t.Errorf("the member was asked for %s with %v", asked.URL, h)
	}
	if body, err := request("GET").Param("watch", "true").DoRaw(t.Context()); !apierrors.IsBadRequest(err) {
		t.Errorf("a watch: %s, %v", body, err)
	}
	if body, err := request("DELETE").DoRaw(t.Context()); !apierrors.IsMethodNotSupported(err) {
		t.Errorf("a deletion: %s, %v", body, err)
	}
	server.Close()
	if body, err := request("GET").DoRaw(t.Context()); !apierrors.IsServiceUnavailable(err) || !strings.Contains(string(body), `cluster \"inspected\": `) {
		t.Errorf("a member that is gone: %s, %v", body, err)
	}
}

// newMemberSecret makes the Secret of a Cluster: a kubeconfig with another server than the Cluster's.
func newMemberSecret(t *testing.T, name string, server *httptest.Server, user string) {
	t.Helper()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	kubeconfig := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: m, contexts: [{name: m, context: {cluster: m, user: m}}],
 clusters: [{name: m, cluster: {server: "https://192.0.2.1", certificate-authority-data: %s}}], users: [{name: m, user: {%s}}]}`,
		base64.StdEncoding.EncodeToString(ca), user)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"kubeconfig": kubeconfig}}
	if _, err := shared.kube.CoreV1().Secrets(v1beta1.FederationNamespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// The proxy reads no file of the federation's machine for a user who may write a Secret, and says so before it opens
// one.
func TestProxyRefusesCredentialsThatNameFiles(t *testing.T) {
	var asked http.Request
	server := member(t, &asked)
	newCluster(t, "names-files", strings.TrimPrefix(server.URL, "https://"))
	newMemberSecret(t, "names-files", server, `tokenFile: /nonexistent`)
	body, err := shared.kube.CoreV1().RESTClient().Get().AbsPath("/apis/federation/v1beta1/clusters/names-files/proxy/api").DoRaw(t.Context())
	if err == nil || !strings.Contains(string(body)+err.Error(), "names files") {
		t.Errorf("%s, %v; want a refusal that speaks of files", body, err)
	}
	if asked.URL != nil {
		t.Errorf("the member was asked for %s", asked.URL)
	}
}

func TestControllersMayDoWhatTheyNeedAndNoMore(t *testing.T) {
	kube, err := kubernetes.NewForConfig(shared.server.ControllersConfig())
	if err != nil {
		t.Fatal(err)
	}
	for asked, want := range map[string]bool{
		"patch apps deployments default": true, "update apps replicasets/status default": true, "watch  secrets default": true,
		"create  secrets federation-system": true, "patch federation clusters/status ": true, "update federation failoverreadinesses/status ": true, "create federation failoverreadinesses ": true, "create  events default": true,
		"update federation placementpolicies/status default": true, "watch federation placementpolicies default": true,
		"patch batch jobs/status default": true, "patch apiextensions.k8s.io customresourcedefinitions ": true,
		"patch federation placementpolicies default": false, "create federation failoverreviews ": false, "get example.org things default": false,
		"delete apps deployments default": false, "create  secrets default": false, "delete federation clusters ": false,
		"get federation clusters/proxy ": false, "create  serviceaccounts/token kube-system": false, "get rbac.authorization.k8s.io clusterroles ": false,
	} {
		p := strings.Split(asked, " ")
		resource, subresource, _ := strings.Cut(p[2], "/")
		review, err := kube.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: p[0], Group: p[1], Resource: resource, Subresource: subresource, Namespace: p[3]}},
		}, metav1.CreateOptions{})
		if err != nil || review.Status.Allowed != want {
			t.Errorf("%s: allowed %v, %v; want %v", asked, review.Status.Allowed, err, want)
		}
	}
}

func TestNobodyIsAnonymous(t *testing.T) {
	config := *shared.admin
	config.CertData, config.KeyData = nil, nil
	kube, err := kubernetes.NewForConfig(&config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kube.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err == nil || !strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("without a certificate: %v", err)
	}
}

func TestOnlyHealthIsAnsweredWithoutACredential(t *testing.T) {
	config := *shared.admin
	config.CertData, config.KeyData = nil, nil
	client, err := rest.HTTPClientFor(&config)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{
		"/livez": http.StatusOK, "/readyz": http.StatusOK, "/readyz?verbose": http.StatusOK,
		"/": 401, "/healthz": 401, "/readyz/ping": 401, "/readyz/": 401, "/livez/../api": 401, "/version": 401, "/metrics": 401, "/api": 401, "/apis": 401,
		"/openapi/v2": 401, "/openid/v1/jwks": 401, "/.well-known/openid-configuration": 401, "/api/v1/secrets": 401, "/apis/federation/v1beta1/clusters": 401,
		"/debug/pprof/": 401, "/logs": 401,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Body.Close(); answer.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, answer.StatusCode, want)
		}
	}
}

// The registry and failover each apply their part of a Cluster's status, and a drain writes the spec: none of them
// removes what another wrote.
func TestWritersOfAClusterLeaveEachOtherAlone(t *testing.T) {
	newCluster(t, "shared", "192.0.2.8:6443")
	clusters := shared.dynamic.Resource(v1beta1.ClustersResource)
	apply := func(manager, status string) {
		t.Helper()
		u := newObject(t, `{apiVersion: federation/v1beta1, kind: Cluster, status: `+status+`}`, "shared")
		if _, err := clusters.ApplyStatus(t.Context(), "shared", u, metav1.ApplyOptions{FieldManager: manager, Force: true}); err != nil {
			t.Fatal(err)
		}
	}
	registry := `{region: east, conditions: [{type: Ready, status: "%s"}, {type: Offline, status: "False"}]}`
	apply("registry", fmt.Sprintf(registry, "True"))
	apply("failover", `{failover: {phase: FailingBack, percent: 50, since: "2026-01-01T00:00:00Z"}, conditions: [{type: FailedOver, status: "True"}]}`)
	apply("capacity", `{capacity: {observedAt: "2026-01-01T00:00:00Z", nodes: 2, allocatable: {cpu: "8", memory: 16Gi, pods: "220"}, requested: {cpu: 1500m, memory: 4Gi, pods: "20"}}}`)
	apply("registry", fmt.Sprintf(registry, "False"))
	taints := `{"spec":{"taints":[{"key":"` + v1beta1.TaintUnschedulable + `","effect":"NoSchedule"},{"key":"` + v1beta1.TaintDrain + `","effect":"NoExecute"}]}}`
	if _, err := clusters.Patch(t.Context(), "shared", types.MergePatchType, []byte(taints), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	u, err := clusters.Get(t.Context(), "shared", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := v1beta1.Cluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &c); err != nil {
		t.Fatal(err)
	}
	if len(c.Status.Conditions) != 3 || c.IsReady() || c.Condition(v1beta1.ClusterFailedOver) == nil || c.Status.Region != "east" {
		t.Errorf("the status is %+v", c.Status)
	}
	if c.Spec.Taints[0].TimeAdded != nil || c.Spec.Taints[1].TimeAdded == nil {
		t.Errorf("taints %v: the one with NoExecute must have a date, and only it", c.Spec.Taints)
	}
	want := "shared False east <none> <none> FailingBack 50%,Drained "
	room := " 6.5/8 12Gi/16Gi 200/220 federation.kubernetes.io/unschedulable:NoSchedule,federation.kubernetes.io/drain:NoExecute 192.0.2.8:6443"
	if row := firstRow(t, "/apis/federation/v1beta1/clusters/shared"); !strings.HasPrefix(row, want) || !strings.HasSuffix(row, room) {
		t.Errorf("the table shows %q, want %q, the age, and %q", row, want, room)
	}
}

// A taint that is applied again without its date keeps the one that it has.
func TestATaintKeepsItsDate(t *testing.T) {
	newCluster(t, "dated", "192.0.2.9:6443")
	clusters := shared.dynamic.Resource(v1beta1.ClustersResource)
	since := func(taints string) any {
		t.Helper()
		u, err := clusters.Patch(t.Context(), "dated", types.MergePatchType, []byte(`{"spec":{"taints":[`+taints+`]}}`), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		all, _, _ := unstructured.NestedSlice(u.Object, "spec", "taints")
		return all[len(all)-1].(map[string]any)["timeAdded"]
	}
	const old = "2026-01-01T00:00:00Z"
	if got := since(`{"key":"a","effect":"NoExecute","timeAdded":"` + old + `"}`); got != old {
		t.Errorf("a date that is given becomes %v", got)
	}
	if got := since(`{"key":"b","effect":"NoSchedule"},{"key":"a","value":"x","effect":"NoExecute"}`); got != old {
		t.Errorf("a taint that is applied again has the date %v", got)
	}
	if got := since(`{"key":"c","effect":"NoExecute"}`); got == old || got == nil {
		t.Errorf("a new taint has the date %v", got)
	}
}
