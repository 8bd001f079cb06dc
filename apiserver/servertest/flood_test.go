package servertest

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	flowcontrolbootstrap "k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/ensurer"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/bootstrap"
)

// Requests of users that take long, more than the server works on at once, keep none of the controllers waiting. They take long here
// since a webhook does not answer.
func TestAFloodOfUsersDoesNotHoldUpTheControllers(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := make(chan struct{}, 10000)
	webhook := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-ctx.Done():
		case <-r.Context().Done():
		}
	}))
	defer webhook.Close()
	if _, err := shared.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "flood"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	hooks := shared.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	if _, err := hooks.Create(ctx, &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "slow"}, Webhooks: []admissionv1.ValidatingWebhook{{
		Name: "slow.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionv1.SideEffectClassNone), TimeoutSeconds: new(int32(30)),
		ClientConfig:      admissionv1.WebhookClientConfig{URL: &webhook.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw})},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "flood"}},
		Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}}}},
	}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hooks.Delete(context.Background(), "slow", metav1.DeleteOptions{}) }()
	bind(t, "edit")
	newCluster(t, "flooded", "192.0.2.10:6443")
	controllers, err := dynamic.NewForConfig(shared.server.ControllersConfig())
	if err != nil {
		t.Fatal(err)
	}
	patch := func(i int) error {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		_, err := controllers.Resource(v1beta1.ClustersResource).Patch(ctx, "flooded", types.MergePatchType, fmt.Appendf(nil, `{"status":{"region":"east-%d"}}`, i), metav1.PatchOptions{}, "status")
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	tenant := rest.CopyConfig(shared.admin)
	tenant.Impersonate.UserName = "edit"
	user, err := kubernetes.NewForConfig(tenant)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the webhook is known", func(ctx context.Context) error {
		short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		_, _ = user.CoreV1().ConfigMaps("flood").Create(short, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "first-"}}, metav1.CreateOptions{})
		select {
		case <-asked:
			return nil
		default:
			return fmt.Errorf("not asked")
		}
	})
	for range 300 {
		wg.Go(func() {
			_, _ = user.CoreV1().ConfigMaps("flood").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "flood-"}}, metav1.CreateOptions{})
		})
	}
	for seen := -1; seen != len(asked); { // until no more are admitted
		seen = len(asked)
		time.Sleep(500 * time.Millisecond)
	}
	if working := len(asked); working > 280 {
		t.Fatalf("%d of 300 requests are being worked on: that is no flood", working)
	}
	for i := range 20 {
		begin := time.Now()
		if err := patch(i); err != nil {
			t.Fatalf("request %d of the controllers, after %v: %v", i, time.Since(begin), err)
		}
	}
}

// Kubernetes deletes each minute what its own earlier versions made and this one does not. Ours remain, even those of
// our earlier version with Kubernetes' annotation.
func TestKubernetesLeavesOurPriorityLevelsAlone(t *testing.T) {
	flow := shared.kube.FlowcontrolV1()
	old := []byte(`{"metadata":{"annotations":{"apf.kubernetes.io/autoupdate-spec":"true"}}}`)
	if _, err := flow.FlowSchemas().Patch(t.Context(), "federation-controllers", types.MergePatchType, old, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := bootstrap.Ensure(t.Context(), shared.kube); err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(shared.kube, 0).Flowcontrol().V1()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	schemas, levels := factory.FlowSchemas(), factory.PriorityLevelConfigurations()
	for _, i := range []cache.SharedIndexInformer{schemas.Informer(), levels.Informer()} {
		go i.RunWithContext(ctx)
		if !cache.WaitForCacheSync(ctx.Done(), i.HasSynced) {
			t.Fatal("not synced")
		}
	}
	if err := ensurer.RemoveUnwantedObjects(ctx, ensurer.NewFlowSchemaOps(flow.FlowSchemas(), schemas.Lister()), slices.Concat(flowcontrolbootstrap.MandatoryFlowSchemas, flowcontrolbootstrap.SuggestedFlowSchemas)); err != nil {
		t.Fatal(err)
	}
	if err := ensurer.RemoveUnwantedObjects(ctx, ensurer.NewPriorityLevelConfigurationOps(flow.PriorityLevelConfigurations(), levels.Lister()), slices.Concat(flowcontrolbootstrap.MandatoryPriorityLevelConfigurations, flowcontrolbootstrap.SuggestedPriorityLevelConfigurations)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"federation-controllers", "federation-leader-election"} {
		if _, err := flow.FlowSchemas().Get(ctx, name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
	if _, err := flow.PriorityLevelConfigurations().Get(ctx, "federation-controllers", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// What an administrator has taken over, with Kubernetes' annotation, stays as it is.
func TestPriorityLevelsOfAnAdministratorStay(t *testing.T) {
	levels := shared.kube.FlowcontrolV1().PriorityLevelConfigurations()
	change := func(auto string) {
		t.Helper()
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"apf.kubernetes.io/autoupdate-spec":%q}},"spec":{"limited":{"nominalConcurrencyShares":7}}}`, auto)
		if _, err := levels.Patch(t.Context(), "federation-controllers", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := bootstrap.Ensure(t.Context(), shared.kube); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		auto  string
		stays bool
	}{{"false", true}, {"true", false}} {
		change(c.auto)
		l, err := levels.Get(t.Context(), "federation-controllers", metav1.GetOptions{})
		if err != nil || (*l.Spec.Limited.NominalConcurrencyShares == 7) != c.stays {
			t.Errorf("autoupdate-spec=%s: %v, %v", c.auto, *l.Spec.Limited.NominalConcurrencyShares, err)
		}
	}
}
