package explain

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
	"federation/apiserver/servertest"
)

// served is a federation's apiserver, with another one as its member east-a and a member west-a that is silent.
type served struct {
	*servertest.Running
	member *servertest.Running
	asked  atomic.Int32 // connections to west-a
}

func serve(t *testing.T) *served {
	t.Helper()
	servertest.Quiet()
	start := func(x *Explainer) *servertest.Running {
		o := servertest.Options(t.TempDir())
		o.ReviewPlacement = x.ReviewPlacement
		o.BeforeReady = func(_ context.Context, loopback *rest.Config) error {
			return x.Use(loopback, func(rt http.RoundTripper) http.RoundTripper { return rt })
		}
		r, err := servertest.Start(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Stop() })
		return r
	}
	s := &served{member: start(&Explainer{})}
	s.Running = start(&Explainer{})
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	go func() {
		for {
			if _, err := silent.Accept(); err != nil {
				return
			}
			s.asked.Add(1)
		}
	}()
	s.join(t, "east-a", strings.TrimPrefix(s.member.Admin.Host, "https://"))
	s.join(t, "west-a", silent.Addr().String())
	s.join(t, "north-a", "127.0.0.1:1")
	return s
}

func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// join makes a Cluster that is ready, with the credential of the member's administrator.
func (s *served) join(t *testing.T, name, address string) {
	t.Helper()
	config := must[*clientcmdapi.Config](t)(clientcmd.LoadFromFile(s.member.Server.KubeconfigPath()))
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		t.Fatal(err)
	}
	kubeconfig := must[[]byte](t)(clientcmd.Write(*config))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"kubeconfig": kubeconfig}}
	must[*corev1.Secret](t)(s.Kube.CoreV1().Secrets(v1beta1.FederationNamespace).Create(t.Context(), secret, metav1.CreateOptions{}))
	clusters := s.Dynamic.Resource(v1beta1.ClustersResource)
	u := must[*unstructured.Unstructured](t)(clusters.Create(t.Context(), fromJSON(t, `{"apiVersion":"federation/v1beta1","kind":"Cluster","metadata":{"name":"`+name+`"},"spec":{
		"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"`+address+`"}],"secretRef":{"name":"`+name+`"}}}`), metav1.CreateOptions{}))
	_ = unstructured.SetNestedSlice(u.Object, []any{map[string]any{"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T12:00:00Z", "lastProbeTime": "2026-01-01T12:00:00Z"}}, "status", "conditions")
	must[*unstructured.Unstructured](t)(clusters.UpdateStatus(t.Context(), u, metav1.UpdateOptions{}))
}

const webDeployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"web"},"spec":{"replicas":3,
	"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"registry.example.test/web:1"}]}}}}`

// deploy makes a Deployment of 3 in a namespace, of which 2 are placed in east-a, where they are, and 1 in west-a.
func (s *served) deploy(t *testing.T, namespace string) {
	t.Helper()
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	for _, at := range []*servertest.Running{s.Running, s.member} {
		must[*corev1.Namespace](t)(at.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}))
	}
	u := fromJSON(t, strings.ReplaceAll(webDeployment, "shop", namespace))
	must[*unstructured.Unstructured](t)(s.Dynamic.Resource(deployments).Namespace(namespace).Create(t.Context(), u.DeepCopy(), metav1.CreateOptions{}))
	controllers := must[*dynamic.DynamicClient](t)(dynamic.NewForConfig(s.Server.ControllersConfig()))
	p := v1beta1.Placement{Clusters: map[string]int64{"east-a": 2, "west-a": 1}}
	patch := must[[]byte](t)(json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{v1beta1.PlacementAnnotation: p.String()}}}))
	must[*unstructured.Unstructured](t)(controllers.Resource(deployments).Namespace(namespace).Patch(t.Context(), "web", types.MergePatchType, patch, metav1.PatchOptions{}))

	federation := must[*corev1.Namespace](t)(s.Kube.CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{}))
	u.SetLabels(map[string]string{v1beta1.ManagedByLabel: string(federation.UID)})
	u.SetAnnotations(map[string]string{v1beta1.CopyOfAnnotation: v1beta1.CopyOf(u.GroupVersionKind().GroupKind(), namespace, "web")})
	_ = unstructured.SetNestedField(u.Object, int64(2), "spec", "replicas")
	must[*unstructured.Unstructured](t)(s.member.Dynamic.Resource(deployments).Namespace(namespace).Create(t.Context(), u, metav1.CreateOptions{}))
}

// tenant returns the federation as a user has it who has edit in one namespace, and nothing else.
func (s *served) tenant(t *testing.T, user, namespace string) *client.Federation {
	t.Helper()
	must[*rbacv1.RoleBinding](t)(s.Kube.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"}}, metav1.CreateOptions{}))
	config := rest.CopyConfig(s.Admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	f := must[*client.Federation](t)(client.New(config, namespace))
	for range 100 { // until the binding is known
		if _, err := f.Kube.AppsV1().Deployments(namespace).List(t.Context(), metav1.ListOptions{}); err == nil {
			return f
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the tenant may not list Deployments")
	return nil
}

func webIn(namespace string) v1beta1.PlacementReviewSpec {
	return v1beta1.PlacementReviewSpec{Group: "apps", Version: "v1", Resource: "deployments", Namespace: namespace, Name: "web"}
}

// TestATenantHasTheirExplanation: edit in one namespace is enough, a silent member costs its own row, and nothing is said of other clusters, or
// how members are reached.
func TestATenantHasTheirExplanation(t *testing.T) {
	s := serve(t)
	s.deploy(t, "shop")
	ann := s.tenant(t, "ann", "shop")
	began := time.Now()
	x, err := ann.ReviewPlacement(t.Context(), webIn("shop"))
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > MemberTimeout+2*time.Second {
		t.Errorf("it took %v", took)
	}
	if len(x.Clusters) != 2 || x.Clusters[0].Name != "east-a" || x.Clusters[0].Current == nil || *x.Clusters[0].Current != 2 ||
		x.Clusters[1].Name != "west-a" || x.Clusters[1].Copy != v1beta1.CopyUnreadable || x.Clusters[1].WaitReason != v1beta1.WaitsForAnswer {
		t.Errorf("%+v", x.Clusters)
	}
	text := string(must[[]byte](t)(json.Marshal(x)))
	for _, secret := range []string{"north-a", "127.0.0.1", "inspect"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is in %s", secret, text)
		}
	}
	admin := must[*client.Federation](t)(client.New(s.Admin, "shop"))
	if x, err := admin.ReviewPlacement(t.Context(), webIn("shop")); err != nil || len(x.Clusters) != 3 {
		t.Errorf("the administrator sees %+v, %v", x, err)
	}
}

// TestATenantHasNothingOfOthers: neither of another namespace, nor of the federation's own, nor by words that are paths; and 100 at once ask no
// member for what is not theirs, and none often for what is, while somebody else is answered.
func TestATenantHasNothingOfOthers(t *testing.T) {
	s := serve(t)
	s.deploy(t, "shop")
	s.deploy(t, "bank")
	eve, ann := s.tenant(t, "eve", "shop"), s.tenant(t, "ann", "bank")
	for name, spec := range map[string]v1beta1.PlacementReviewSpec{
		"another namespace's object":    webIn("bank"),
		"a credential":                  {Version: "v1", Resource: "secrets", Namespace: v1beta1.FederationNamespace, Name: "east-a"},
		"one that may not be there":     {Version: "v1", Resource: "secrets", Namespace: "bank", Name: "none"},
		"a path as name":                {Group: "apps", Version: "v1", Resource: "deployments", Namespace: "shop", Name: "../../bank/deployments/web"},
		"a path as resource":            {Group: "apps", Version: "v1", Resource: "deployments/../../../bank", Namespace: "shop", Name: "web"},
		"no namespace":                  {Group: "apps", Version: "v1", Resource: "deployments", Name: "web"},
		"what is not to be waited for":  {Group: "apps", Version: "v1", Resource: "deployments", Namespace: "shop", Name: "web", MemberTimeout: &metav1.Duration{Duration: time.Hour}},
		"a kind that clusters have not": {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings", Namespace: "shop", Name: "eve"},
	} {
		if x, err := eve.ReviewPlacement(t.Context(), spec); err == nil || !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) && !apierrors.IsNotFound(err) {
			t.Errorf("%s: %+v, %v", name, x, err)
		} else if strings.Contains(err.Error(), "bank\" not found") {
			t.Errorf("%s says what is there: %v", name, err)
		}
	}
	nobody := rest.CopyConfig(s.Admin)
	nobody.Impersonate = rest.ImpersonationConfig{UserName: "system:anonymous", Groups: []string{"system:unauthenticated"}}
	if _, err := must[*client.Federation](t)(client.New(nobody, "shop")).ReviewPlacement(t.Context(), webIn("shop")); !apierrors.IsForbidden(err) {
		t.Errorf("nobody in particular: %v", err)
	}
	for namespace, most := range map[string]int32{"bank": 2, "shop": 10} {
		before := s.asked.Load()
		var answered atomic.Int32
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if _, err := eve.ReviewPlacement(t.Context(), webIn(namespace)); err == nil {
					answered.Add(1)
				} else if !apierrors.IsForbidden(err) && !apierrors.IsTooManyRequests(err) {
					t.Error(err)
				}
			})
		}
		if _, err := ann.ReviewPlacement(t.Context(), webIn("bank")); err != nil {
			t.Errorf("somebody else, meanwhile: %v", err)
		}
		all.Wait()
		asked := s.asked.Load() - before
		t.Logf("%s: %d of 100 answered, the member was asked %d times", namespace, answered.Load(), asked)
		if (answered.Load() > 0) != (namespace == "shop") || asked > most {
			t.Errorf("%s: %d of 100 answered, the member was asked %d times, want at most %d, ann's among them", namespace, answered.Load(), asked, most)
		}
	}
}
