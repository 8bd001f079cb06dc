package housekeeping

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	discoveryfake "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/metadata/metadatainformer"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/controller-manager/pkg/informerfactory"
)

const counted = corev1.ResourceName("count/ingresses.networking.k8s.io")

// ingressesOnly is an API that serves Ingresses and nothing else that can be counted.
type ingressesOnly struct{ *fake.Clientset }

func (ingressesOnly) Discovery() discovery.DiscoveryInterface { return ingressDiscovery{} }

type ingressDiscovery struct{ *discoveryfake.FakeDiscovery }

func (ingressDiscovery) ServerPreferredNamespacedResources() ([]*metav1.APIResourceList, error) {
	return []*metav1.APIResourceList{{GroupVersion: "networking.k8s.io/v1", APIResources: []metav1.APIResource{
		{Name: "ingresses", Kind: "Ingress", Namespaced: true, Verbs: metav1.Verbs{"create", "delete", "list", "watch"}},
	}}}, nil
}

func quotaOfTwo(used string) *corev1.ResourceQuota {
	hard := corev1.ResourceList{counted: resource.MustParse("2")}
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "two", Namespace: "default"}, Spec: corev1.ResourceQuotaSpec{Hard: hard},
		Status: corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{counted: resource.MustParse(used)}},
	}
}

func ingress(name string) *networkingv1.Ingress {
	return &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
}

// A write of admission to a quota may be seen here later than the deletion that came after it.
func TestAQuotaThatIsSeenLateIsCountedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kube := fake.NewClientset(quotaOfTwo("1"), ingress("one"))
		late := watch.NewRaceFreeFake()
		kube.PrependWatchReactor("resourcequotas", func(clienttesting.Action) (bool, watch.Interface, error) { return true, late, nil })
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		count(ctx, t, ingressesOnly{kube})
		time.Sleep(time.Second)

		quotas, ingresses := kube.CoreV1().ResourceQuotas("default"), kube.NetworkingV1().Ingresses("default")
		admitted, err := quotas.UpdateStatus(ctx, quotaOfTwo("2"), metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ingresses.Create(ctx, ingress("two"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := ingresses.Delete(ctx, "one", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		late.Modify(admitted)
		time.Sleep(30 * time.Second)
		got, err := quotas.Get(ctx, "two", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if used := got.Status.Used[counted]; used.String() != "1" {
			t.Errorf("%s of 2 used half a minute after one of two was deleted, want 1", used.String())
		}
	})
}

// count counts the quotas of an API until ctx is done.
func count(ctx context.Context, t *testing.T, kube kubernetes.Interface) {
	t.Helper()
	factory := informers.NewSharedInformerFactory(kube, resync)
	meta := metadatainformer.NewSharedInformerFactory(metadatafake.NewSimpleMetadataClient(metadatafake.NewTestScheme()), resync)
	s := &set{kube: kube, informers: factory, objects: informerfactory.NewInformerFactory(factory, meta), started: make(chan struct{})}
	run, err := s.quotas(ctx)
	if err != nil {
		t.Fatal(err)
	}
	go run(ctx)
	factory.Start(ctx.Done())
	close(s.started)
}
