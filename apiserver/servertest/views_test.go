package servertest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"federation/apiserver/apis/federation/v1beta1"
)

// shown are the Clusters whose pods the shared server shows.
var shown atomic.Pointer[[]*v1beta1.Cluster]

func shownClusters() []*v1beta1.Cluster {
	if all := shown.Load(); all != nil {
		return *all
	}
	return nil
}

// memberWithPods returns a member with the pods a and b in namespace default. b appears when the channel is closed.
func memberWithPods(t *testing.T, b chan struct{}) *httptest.Server {
	t.Helper()
	kubeSystem, err := shared.kube.CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := func(name, version string) string {
		return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"default","uid":%q,"resourceVersion":%q,"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"i"}]},
 "status":{"phase":"Running","containerStatuses":[{"name":"c","ready":true,"restartCount":3,"state":{"running":{}}}]}}`, name, name, version)
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Query().Get("watch") == "true":
			w.(http.Flusher).Flush()
			select {
			case <-b:
				fmt.Fprintf(w, `{"type":"ADDED","object":%s}`, pod("b", "6"))
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			case <-r.Context().Done():
			}
		case strings.HasSuffix(r.URL.Path, "/exec"):
			fmt.Fprintf(w, "%s?%s as %s", r.URL.Path, r.URL.RawQuery, r.Header.Get("Impersonate-User"))
		case strings.HasPrefix(r.URL.Path, "/apis/metrics.k8s.io/v1beta1/"):
			fmt.Fprint(w, `{"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1","items":[{"metadata":{"name":"a","namespace":"default"},"containers":[{"name":"c","usage":{"cpu":"5m"}}]}]}`)
		case strings.HasSuffix(r.URL.Path, "/pods/a"):
			fmt.Fprint(w, pod("a", "5"))
		case strings.HasSuffix(r.URL.Path, "/pods"):
			fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[%s]}`, pod("a", "5"))
		case r.URL.Path == "/api/v1/nodes":
			fmt.Fprint(w, `{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"n1"}}]}`)
		case r.URL.Path == "/api/v1/namespaces":
			fmt.Fprintf(w, `{"kind":"NamespaceList","apiVersion":"v1","items":[{"metadata":{"name":"default","labels":{%q:%q}}}]}`, v1beta1.AcceptLabel, kubeSystem.UID)
		case r.URL.Path == "/api/v1/namespaces/default":
			fmt.Fprintf(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"default","labels":{%q:%q}}}`, v1beta1.AcceptLabel, kubeSystem.UID)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server
}

// show makes the shared server show the pods of a member, and of another one that does not answer.
func show(t *testing.T, prefix string, b chan struct{}) {
	t.Helper()
	server := memberWithPods(t, b)
	newMemberSecret(t, prefix+"-east", server, `token: t`)
	newMemberSecret(t, prefix+"-west", server, `token: t`)
	at := func(name, address string) *v1beta1.Cluster {
		return &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: v1beta1.ClusterSpec{
			ServerAddressByClientCIDRs: []v1beta1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: address}},
			SecretRef:                  &corev1.LocalObjectReference{Name: name},
		}}
	}
	shown.Store(&[]*v1beta1.Cluster{at(prefix+"-east", strings.TrimPrefix(server.URL, "https://")), at(prefix+"-west", "127.0.0.1:1")})
	t.Cleanup(func() { shown.Store(nil) })
}

func TestPodsOfMembersAreServed(t *testing.T) {
	b := make(chan struct{})
	show(t, "shown", b)
	pods := shared.kube.CoreV1().Pods("default")
	var warnings []string
	config := restclient.CopyConfig(shared.admin)
	config.WarningHandler = warningsTo{&warnings}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != "a.shown-east" {
		t.Fatalf("%v, %v", list, err)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "cluster shown-west: ") {
		t.Errorf("warnings %q", warnings)
	}
	if p, err := pods.Get(t.Context(), "a.shown-east", metav1.GetOptions{}); err != nil || p.Labels[v1beta1.ClusterLabel] != "shown-east" {
		t.Errorf("%v, %v", p, err)
	}
	body, err := shared.kube.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/default/pods").SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	table := metav1.Table{}
	if err := json.Unmarshal(body, &table); err != nil {
		t.Fatal(err)
	}
	cells := table.Rows[0].Cells
	if got := fmt.Sprint(cells[:4]...); got != "a.shown-east1/1Running3" && got != "a.shown-east 1/1 Running 3" {
		t.Errorf("row %q", got)
	}
	if cells[len(cells)-1] != "shown-east" {
		t.Errorf("row %q", cells)
	}
	nodes, err := shared.kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 1 || nodes.Items[0].Name != "n1.shown-east" {
		t.Errorf("%v, %v", nodes, err)
	}
}

type warningsTo struct{ all *[]string }

func (w warningsTo) HandleWarningHeader(_ int, _, text string) { *w.all = append(*w.all, text) }

func TestWhatPodsOfMembersUseIsServed(t *testing.T) {
	show(t, "used", nil)
	list := &metricsv1beta1.PodMetricsList{}
	body, err := shared.kube.Discovery().RESTClient().Get().AbsPath("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods").SetHeader("Accept", "application/json").DoRaw(t.Context())
	if err == nil {
		err = json.Unmarshal(body, list)
	}
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != "a.used-east" || list.Items[0].Containers[0].Usage.Cpu().String() != "5m" {
		t.Errorf("%s, %v", body, err)
	}
}

// exec is the caller's, and the member decides; a user who may only see pods cannot exec, not even by GET, with which
// web sockets begin.
func TestExecGoesToTheMemberAsTheCaller(t *testing.T) {
	show(t, "exec", nil)
	path := "/api/v1/namespaces/default/pods/a.exec-east/exec"
	for name, verb := range map[string]func() *restclient.Request{"GET": shared.kube.CoreV1().RESTClient().Get, "POST": shared.kube.CoreV1().RESTClient().Post} {
		body, err := verb().AbsPath(path).Param("command", "ls").DoRaw(t.Context())
		if want := "/api/v1/namespaces/default/pods/a/exec?command=ls as federation-admin"; err != nil || string(body) != want {
			t.Errorf("%s: %q, %v; want %q", name, body, err, want)
		}
	}
	bind(t, "view")
	config := restclient.CopyConfig(shared.admin)
	config.Impersonate.UserName = "view"
	viewer, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "what a viewer sees", func(ctx context.Context) error {
		list, err := viewer.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) != 1 {
			err = fmt.Errorf("%d pods, want 1", len(list.Items))
		}
		return err
	})
	for name, verb := range map[string]func() *restclient.Request{"GET": viewer.CoreV1().RESTClient().Get, "POST": viewer.CoreV1().RESTClient().Post} {
		if body, err := verb().AbsPath(path).Param("command", "ls").DoRaw(t.Context()); !errors.IsForbidden(err) {
			t.Errorf("%s: %q, %v", name, body, err)
		}
	}
	if _, err := viewer.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); !errors.IsForbidden(err) {
		t.Errorf("nodes: %v", err)
	}
}

// client-go's informers are what k9s and controllers are built on.
func TestInformersFollowPodsOfMembers(t *testing.T) {
	b := make(chan struct{})
	show(t, "followed", b)
	factory := informers.NewSharedInformerFactory(shared.kube, 0)
	informer := factory.Core().V1().Pods().Informer()
	factory.Start(t.Context().Done())
	has := func(key string) func() bool {
		return func() bool { _, ok, err := informer.GetStore().GetByKey(key); return ok && err == nil }
	}
	within(t, 20*time.Second, informer.HasSynced)
	within(t, 5*time.Second, has("default/a.followed-east"))
	close(b)
	within(t, 10*time.Second, has("default/b.followed-east"))
}

func within(t *testing.T, d time.Duration, is func() bool) {
	t.Helper()
	for begin := time.Now(); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Since(begin) > d {
			t.Fatalf("not within %v", d)
		}
	}
}

func TestPodsAndNodesCannotBeWritten(t *testing.T) {
	pods := shared.kube.CoreV1().Pods("default")
	_, err := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
	if !errors.IsMethodNotSupported(err) || !strings.Contains(err.Error(), "create a workload that makes them") {
		t.Error(err)
	}
	if err := pods.Delete(t.Context(), "x", metav1.DeleteOptions{}); !errors.IsMethodNotSupported(err) || !strings.Contains(err.Error(), "can only be read here") {
		t.Error(err)
	}
	if err := shared.kube.CoreV1().Nodes().Delete(t.Context(), "x", metav1.DeleteOptions{}); !errors.IsMethodNotSupported(err) || !strings.Contains(err.Error(), "can only be read here") {
		t.Error(err)
	}
	resources, err := shared.kube.Discovery().ServerResourcesForGroupVersion("v1")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range resources.APIResources {
		if (r.Name == "pods" || r.Name == "nodes") && strings.Join(r.Verbs, ",") != "get,list,watch" {
			t.Errorf("%s can be %v", r.Name, r.Verbs)
		}
	}
}
