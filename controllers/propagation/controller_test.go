package propagation

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/propagation/plan"
)

// api is an API server in memory, the federation's or a member's, with informers.
type api struct {
	client  *fake.FakeDynamicClient
	factory dynamicinformer.DynamicSharedInformerFactory
}

func newAPI(objects ...runtime.Object) api {
	lists := map[schema.GroupVersionResource]string{v1beta1.ClustersResource: "ClusterList", v1beta1.PoliciesResource: "PlacementPolicyList", plan.EndpointSlices: "EndpointSliceList"}
	for i := range plan.Kinds {
		lists[plan.Kinds[i].Resource] = plan.Kinds[i].Kind + "List"
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, objects...)
	return api{client, dynamicinformer.NewDynamicSharedInformerFactory(client, 0)}
}

func (a api) informers(r schema.GroupVersionResource) cache.SharedIndexInformer {
	return a.factory.ForResource(r).Informer()
}

// writes returns the verbs and names of the writes.
func (a api) writes() (out []string) {
	for _, action := range a.client.Actions() {
		if named, ok := action.(interface{ GetName() string }); ok && !slices.Contains([]string{"get", "create"}, action.GetVerb()) {
			out = append(out, action.GetVerb()+" "+named.GetName())
		}
	}
	return out
}

func configMap(labels, annotations map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": "value"}}}
	u.SetNamespace("shop")
	u.SetName("config")
	u.SetUID("u1")
	u.SetResourceVersion("5")
	u.SetLabels(labels)
	u.SetAnnotations(annotations)
	u.SetFinalizers([]string{v1beta1.DeleteFromClustersFinalizer, v1beta1.OrphanFinalizer})
	return u
}

// eastA is the Cluster of the one member.
func eastA() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind("Cluster"))
	u.SetName("east-a")
	return u
}

var mark = map[string]string{v1beta1.ManagedByLabel: "fed"}

// bound returns the annotations of a copy, of ConfigMap shop/config if no kind is given.
func bound(source string, kind ...string) map[string]string {
	of := append(kind, "ConfigMap")[0] + "/shop/config"
	return map[string]string{v1beta1.CopyOfAnnotation: of, v1beta1.SourceAnnotation: source}
}

// engage runs do beside a controller over a federation and one member, east-a.
func engage(t *testing.T, federation, member api, do func()) {
	engageWith(t, federation, federation.informers, member, member.informers, do)
}

// engageWith is engage with informers of which some are of other APIs.
func engageWith(t *testing.T, federation api, ofFederation Informers, member api, ofMember Informers, do func()) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		c, err := New(Options{Client: federation.client, Informers: ofFederation, Federation: "fed", Recorder: record.NewFakeRecorder(100)})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Engage(ctx, Member{Name: "east-a", Client: member.client, Informers: ofMember}); err != nil {
			t.Fatal(err)
		}
		federation.factory.Start(ctx.Done())
		member.factory.Start(ctx.Done())
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		settle()
		do()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		federation.factory.Shutdown()
		member.factory.Shutdown()
		settle()
	})
}

// A controller ends while the registry engages a member: nothing of the member remains. A remaining queue would
// deadlock here.
func TestAMemberThatComesAfterTheEnd(t *testing.T) {
	federation, member := newAPI(), newAPI()
	synctest.Test(t, func(t *testing.T) {
		c, err := New(Options{Client: federation.client, Informers: federation.informers, Federation: "fed", Recorder: record.NewFakeRecorder(100)})
		if err != nil {
			t.Fatal(err)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if err := c.Run(ended); err != nil {
			t.Fatal(err)
		}
		if err := c.Engage(t.Context(), Member{Name: "east-a", Client: member.client, Informers: member.informers}); err != nil {
			t.Error(err)
		}
	})
}

func settle() { time.Sleep(time.Second); synctest.Wait() }

// A cluster can be engaged while its Cluster object is not in the cache: it has just joined, or is leaving. Its unknown
// labels must not count as labels that do not match.
func TestNothingIsDeletedByLabelsThatAreNotKnown(t *testing.T) {
	selector := map[string]string{v1beta1.ClusterSelectorAnnotation: `[{"key":"tier","operator":"In","values":["gold"]}]`}
	federation, member := newAPI(configMap(nil, selector)), newAPI(configMap(mark, bound("u1")))
	engage(t, federation, member, func() {
		if got := member.writes(); len(got) > 0 {
			t.Errorf("without a Cluster: %v", got)
		}
		cluster := eastA()
		if _, err := federation.client.Resource(v1beta1.ClustersResource).Create(t.Context(), cluster, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		settle()
		if got := member.writes(); !slices.Equal(got, []string{"delete config"}) {
			t.Errorf("with a Cluster that is not selected: %v", got)
		}
	})
}

// Policies that are listed last, as may be after another process has taken objects over, are waited for: an object that is as its policy says is not
// reported to wait for it.
func TestPoliciesAreReadBeforeAnythingIsReported(t *testing.T) {
	object := configMap(nil, map[string]string{v1beta1.PlacementAnnotation: `{"clusters":{"east-a":1},"policy":"p"}`})
	cluster := eastA()
	policy := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "federation/v1beta1", "kind": "PlacementPolicy", "metadata": map[string]any{"name": "p", "namespace": "shop"}}}
	federation, member, late := newAPI(object, cluster), newAPI(), newAPI(policy)
	informers := func(r schema.GroupVersionResource) cache.SharedIndexInformer {
		if r == v1beta1.PoliciesResource {
			return late.informers(r)
		}
		return federation.informers(r)
	}
	engageWith(t, federation, informers, member, member.informers, func() {
		time.Sleep(2 * notedAfter)
		settle()
		if got := slices.Concat(federation.writes(), member.writes()); len(got) > 0 {
			t.Errorf("before the policies are there: %v", got)
		}
		stop := make(chan struct{})
		late.factory.Start(stop)
		settle()
		if got := slices.Concat(federation.writes(), member.writes()); !slices.Equal(slices.Compact(got), []string{"patch config"}) {
			t.Errorf("when they are there: %v, want the copy alone", got)
		}
		close(stop)
		late.factory.Shutdown()
	})
}

// A request that was in flight when a member was lost may be carried out when it is back, after its stale copies were
// cleared.
func TestACopyThatComesLateGoes(t *testing.T) {
	federation, member := newAPI(), newAPI()
	engage(t, federation, member, func() {
		if _, err := member.client.Resource(configMaps).Namespace("shop").Create(t.Context(), configMap(mark, bound("u1")), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		settle()
		if got := member.writes(); len(got) != 0 {
			t.Errorf("%v: before it is known whether there are very many of them", got)
		}
		time.Sleep(gathering)
		settle()
		if got := member.writes(); !slices.Equal(got, []string{"delete config"}) {
			t.Errorf("%v", got)
		}
	})
}

// unlisted is the informer of a resource that a member does not let us list: it counts as empty.
type unlisted struct{ cache.SharedIndexInformer }

func (unlisted) HasSynced() bool { return true }
func (unlisted) Lacking() bool   { return true }

// If a member does not let us list endpoints or Services, their addresses stay as they were.
func TestAddressesStayWhereRightsAreMissing(t *testing.T) {
	const was = `{"items":[{"cluster":"east-a","items":[{"ip":"192.0.2.1"}]}]}`
	for _, forbidden := range []schema.GroupVersionResource{plan.EndpointSlices, services} {
		t.Run(forbidden.Resource, func(t *testing.T) {
			service := configMap(nil, map[string]string{v1beta1.ServiceIngressesAnnotation: was})
			service.Object["kind"], service.Object["data"] = "Service", nil
			service.Object["spec"] = map[string]any{"type": "LoadBalancer"}
			copied := service.DeepCopy()
			copied.SetAnnotations(bound("u1", "Service"))
			copied.SetLabels(mark)
			copied.SetFinalizers(nil)
			copied.Object["status"] = map[string]any{"loadBalancer": map[string]any{"ingress": []any{map[string]any{"ip": "192.0.2.1"}}}}
			cluster := eastA()
			federation, member, empty := newAPI(service, cluster), newAPI(copied), newAPI()
			informers := func(r schema.GroupVersionResource) cache.SharedIndexInformer {
				if r == forbidden {
					return unlisted{empty.informers(r)}
				}
				return member.informers(r)
			}
			engageWith(t, federation, federation.informers, member, informers, func() {
				got, err := federation.client.Resource(services).Namespace("shop").Get(t.Context(), "config", metav1.GetOptions{})
				if err != nil || got.GetAnnotations()[v1beta1.ServiceIngressesAnnotation] != was {
					t.Errorf("%v: %v, want %s", err, got.GetAnnotations(), was)
				}
			})
		})
	}
}

// In a returning member, the copy of an object that was deleted and created again is deleted first, an orphaned one is
// released, and one of which nothing is known is adopted.
func TestACopyOfAnEarlierObject(t *testing.T) {
	cluster := eastA()
	for record, want := range map[string]struct {
		uid, verb string
		patch     types.PatchType
	}{
		"2026-11-23T08:00:00Z Deleted ConfigMap shop/config":  {uid: "u0", verb: "delete"},
		"2026-11-23T08:00:00Z Orphaned ConfigMap shop/config": {"u0", "patch", types.MergePatchType},
		"2026-11-23T08:00:00Z Deleted ConfigMap shop/another": {"u9", "patch", types.ApplyPatchType},
	} {
		t.Run(record, func(t *testing.T) {
			records := configMap(nil, nil)
			records.SetNamespace(v1beta1.FederationNamespace)
			records.SetName(recordsName(key{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "config"}}))
			records.Object["data"] = map[string]any{want.uid: record}
			federation, member := newAPI(configMap(nil, nil), cluster, records), newAPI(configMap(mark, bound("u0/2")))
			engage(t, federation, member, func() {
				if got := member.writes(); len(got) == 0 || got[0] != want.verb+" config" {
					t.Errorf("%v", got)
				}
				for _, action := range member.client.Actions() {
					if patch, ok := action.(clienttesting.PatchAction); ok && want.patch != "" {
						if patch.GetPatchType() != want.patch {
							t.Errorf("the patch is %s", patch.GetPatchType())
						}
						return
					}
				}
			})
		})
	}
}

// Objects wait for their namespace in a member: thousands of refused writes would delay the namespace.
func TestObjectsWaitForTheirNamespace(t *testing.T) {
	cluster := eastA()
	ns := configMap(nil, nil)
	ns.Object["kind"], ns.Object["data"] = "Namespace", nil
	ns.SetNamespace("")
	ns.SetName("shop")
	for _, c := range []struct {
		name   string
		answer error
		want   []string
	}{
		{"it is late", apierrors.NewTimeoutError("slow", 1), []string{"patch shop"}},
		{"it will not come", apierrors.NewForbidden(namespaces.GroupResource(), "shop", nil), []string{"patch config", "patch shop"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			federation, member := newAPI(cluster, ns, configMap(nil, nil)), newAPI()
			member.client.PrependReactor("patch", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, c.answer })
			member.client.PrependReactor("patch", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return true, configMap(mark, nil), nil })
			engage(t, federation, member, func() {
				got := member.writes()
				slices.Sort(got)
				if got = slices.Compact(got); !slices.Equal(got, c.want) {
					t.Errorf("written %v, want %v", got, c.want)
				}
				made := ns.DeepCopy()
				made.SetLabels(mark)
				made.SetAnnotations(map[string]string{v1beta1.CopyOfAnnotation: "Namespace/shop"})
				if _, err := member.client.Resource(namespaces).Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				settle()
				if got := member.writes(); !slices.Contains(got, "patch config") {
					t.Errorf("once it is there: %v", got)
				}
			})
		})
	}
}

// Nothing is put into a namespace that a member had before, unless it accepts that, also where the member has no fence that would refuse it.
func TestObjectsStayOutOfNamespacesOfTheMembersOwn(t *testing.T) {
	cluster := eastA()
	namespace := func(labels map[string]string) *unstructured.Unstructured {
		ns := configMap(labels, nil)
		ns.Object["kind"], ns.Object["data"] = "Namespace", nil
		ns.SetNamespace("")
		ns.SetName("shop")
		return ns
	}
	for _, c := range []struct {
		name   string
		labels map[string]string
		enters bool
	}{
		{"its own", nil, false},
		{"accepts another federation", map[string]string{v1beta1.AcceptLabel: "another", v1beta1.AlsoAcceptLabel + "third": "true"}, false},
		{"accepts", map[string]string{v1beta1.AcceptLabel: "fed"}, true},
		{"accepts two", map[string]string{v1beta1.AcceptLabel: "another", v1beta1.AlsoAcceptLabel + "fed": "true"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			federation, member := newAPI(cluster, configMap(nil, nil)), newAPI(namespace(c.labels))
			member.client.PrependReactor("patch", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return true, configMap(mark, nil), nil })
			engage(t, federation, member, func() {
				if got := member.writes(); slices.Contains(got, "patch config") != c.enters {
					t.Errorf("written: %v", got)
				}
				if c.enters {
					return
				}
				now, err := federation.client.Resource(configMaps).Namespace("shop").Get(t.Context(), "config", metav1.GetOptions{})
				if err != nil || !strings.Contains(now.GetAnnotations()[v1beta1.PropagatedAnnotation], v1beta1.AcceptLabel+"=fed") {
					t.Errorf("%v, %v", now.GetAnnotations(), err)
				}
				if _, err := member.client.Resource(namespaces).Update(t.Context(), namespace(map[string]string{v1beta1.AcceptLabel: "fed"}), metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				if got := member.writes(); !slices.Contains(got, "patch config") {
					t.Errorf("once it accepts: %v", got)
				}
			})
		})
	}
}
