package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/fleettest/memapi"
)

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

// world is a federation as its informers show it. What the controller writes goes to an API in memory.
type world struct {
	rng    *rand.Rand
	choose int
	client *memapi.Client
	api    *memapi.API
	writes atomic.Uint64

	mu        sync.Mutex
	clusters  []*v1beta1.Cluster
	objects   []*unstructured.Unstructured
	at        [][]string // of each object: its clusters
	resources map[schema.GroupVersionResource]*source
	versions  int
}

// source is what an informer lists and watches.
type source struct {
	informer cache.SharedIndexInformer
	items    []unstructured.Unstructured
	events   *watch.FakeWatcher
}

func newWorld(clusters, objects, choose int) *world {
	w := &world{rng: rand.New(rand.NewSource(1)), choose: min(choose, clusters), resources: map[schema.GroupVersionResource]*source{}}
	w.api = memapi.New(memapi.Options{Resources: []memapi.Resource{{GroupVersionResource: v1beta1.ReadinessResource, Kind: "FailoverReadiness", Status: true}}})
	w.client = w.api.Client("readiness", func(_ context.Context, r memapi.Request, do func() error) error {
		if r.Writes() {
			w.writes.Add(1)
		}
		return do()
	})
	groups := clusters / w.choose
	for i := range clusters {
		w.clusters = append(w.clusters, member(i, groups, zoneSize(clusters)))
	}
	for i := range 10 {
		w.add(v1beta1.PoliciesResource, policy(i, groups))
	}
	for i := range objects {
		w.objects = append(w.objects, w.workload(i))
	}
	for _, c := range w.clusters {
		w.add(v1beta1.ClustersResource, asUnstructured(c, "Cluster"))
	}
	for _, o := range w.objects {
		w.add(deployments, o)
	}
	return w
}

// zoneSize returns how many clusters a zone has: ten, or a fifth of all where they are few.
func zoneSize(clusters int) int { return max(1, min(10, clusters/5)) }

// member is a ready cluster in one of the zones, which are in ten regions.
func member(i, groups, zone int) *v1beta1.Cluster {
	before := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	have := func(pods int64) corev1.ResourceList {
		return corev1.ResourceList{"cpu": *resource.NewQuantity(pods, resource.DecimalSI), "memory": *resource.NewQuantity(pods<<30, resource.BinarySI), "pods": *resource.NewQuantity(pods, resource.DecimalSI)}
	}
	return &v1beta1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%04d", i), Labels: map[string]string{"group": fmt.Sprint(i % groups)}},
		Status: v1beta1.ClusterStatus{
			Region: fmt.Sprintf("r%d", i/zone%10), Zones: []string{fmt.Sprintf("z%d", i/zone/10)},
			Conditions: []v1beta1.ClusterCondition{{Type: v1beta1.ClusterReady, Status: corev1.ConditionTrue, LastTransitionTime: before}},
			Failover:   &v1beta1.ClusterFailover{Phase: v1beta1.PhaseServing, Since: before},
			Capacity:   &v1beta1.ClusterCapacity{Nodes: 10, Allocatable: have(160), ObservedAt: before, Free: []v1beta1.NodeClass{{Nodes: 10, Free: have(10)}}},
		},
	}
}

func policy(i, groups int) *unstructured.Unstructured {
	p := &v1beta1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("n", i), Name: "p"}}
	p.Spec.ResourceSelectors = []v1beta1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}}
	p.Spec.Clusters = &v1beta1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"group": fmt.Sprint(i % groups)}}}
	return asUnstructured(p, "PlacementPolicy")
}

// workload is a Deployment of 6 replicas in as many of the clusters that its policy chooses.
func (w *world) workload(i int) *unstructured.Unstructured {
	groups := len(w.clusters) / w.choose
	placed, in := map[string]int64{}, []string{}
	for _, k := range w.rng.Perm(w.choose)[:6] {
		name := w.clusters[k*groups+i%10%groups].Name
		placed[name] = 1
		in = append(in, name)
	}
	w.at = append(w.at, in)
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{}, "spec": map[string]any{
		"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "resources": map[string]any{"requests": map[string]any{"cpu": "1", "memory": "512Mi"}}}}}},
	}}}
	u.SetNamespace(fmt.Sprint("n", i%10))
	u.SetName(fmt.Sprintf("w%05d", i))
	place(u, placed)
	return u
}

func place(u *unstructured.Unstructured, placed map[string]int64) {
	p, sum := v1beta1.Placement{Clusters: placed, Policy: "p"}, int64(0)
	for _, n := range placed {
		sum += n
	}
	_ = unstructured.SetNestedField(u.Object, sum, "spec", "replicas") // it has a spec
	u.SetAnnotations(map[string]string{v1beta1.PlacementAnnotation: p.String()})
}

func asUnstructured(o any, kind string) *unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		panic(err) // types of ours
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetAPIVersion(v1beta1.SchemeGroupVersion.String())
	u.SetKind(kind)
	return u
}

func (w *world) add(r schema.GroupVersionResource, u *unstructured.Unstructured) {
	w.versions++
	u.SetResourceVersion(fmt.Sprint(w.versions))
	u.SetUID("u")
	w.source(r).items = append(w.source(r).items, *u)
}

func (w *world) source(r schema.GroupVersionResource) *source {
	if s := w.resources[r]; s != nil {
		return s
	}
	s := &source{events: watch.NewFakeWithChanSize(10000, false)}
	s.informer = cache.NewSharedIndexInformer(&cache.ListWatch{
		ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
			return &unstructured.UnstructuredList{Object: map[string]any{"metadata": map[string]any{"resourceVersion": "1"}}, Items: s.items}, nil
		},
		WatchFunc: func(o metav1.ListOptions) (watch.Interface, error) {
			if o.SendInitialEvents != nil {
				return nil, errors.New("lists are asked for") // then the informer lists
			}
			return s.events, nil
		},
	}, &unstructured.Unstructured{}, 0, cache.Indexers{})
	w.resources[r] = s
	return s
}

// informer is what the controller sees of a resource.
func (w *world) informer(r schema.GroupVersionResource) cache.SharedIndexInformer {
	return w.source(r).informer
}

// start starts the informers and waits until they have all.
func (w *world) start(ctx context.Context) error {
	own := dynamicinformer.NewDynamicSharedInformerFactory(w.client, 0)
	w.resources[v1beta1.ReadinessResource] = &source{informer: own.ForResource(v1beta1.ReadinessResource).Informer()}
	own.Start(ctx.Done())
	for _, k := range v1beta1.FederatedKinds {
		w.source(k.Resource)
	}
	for r, s := range w.resources {
		if r != v1beta1.ReadinessResource {
			go s.informer.RunWithContext(ctx)
		}
		if !cache.WaitForCacheSync(ctx.Done(), s.informer.HasSynced) {
			return ctx.Err()
		}
	}
	return nil
}

// change moves a replica of an object from one cluster to another, so many times a second; both clusters count anew.
func (w *world) change(ctx context.Context, perSecond int, long time.Duration) {
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for end := time.Now().Add(long); time.Now().Before(end) && ctx.Err() == nil; <-tick.C {
		w.mu.Lock()
		i := w.rng.Intn(len(w.objects))
		placed := maps.Clone(v1beta1.ParsePlacement(w.objects[i].GetAnnotations()[v1beta1.PlacementAnnotation]).Clusters)
		from, to := w.at[i][w.rng.Intn(6)], w.at[i][w.rng.Intn(6)]
		if placed[from] > 1 {
			placed[from]--
		}
		if placed[to] < 3 {
			placed[to]++
		}
		w.update(i, placed)
		w.recount(from, w.rng.Int63n(3)-1)
		w.mu.Unlock()
	}
}

func (w *world) update(i int, placed map[string]int64) {
	u := w.objects[i].DeepCopy()
	place(u, placed)
	w.objects[i] = u
	w.send(deployments, u)
}

// recount has a cluster report that its nodes have more room, or less.
func (w *world) recount(name string, more int64) {
	for i, c := range w.clusters {
		if c.Name != name {
			continue
		}
		if c.Status.Capacity.Free == nil {
			return // it has lost its nodes
		}
		c = c.DeepCopy()
		w.clusters[i] = c
		for k, q := range c.Status.Capacity.Free[0].Free {
			n := more
			if k == corev1.ResourceMemory {
				n <<= 30
			}
			if q.Add(*resource.NewQuantity(n, q.Format)); q.Sign() > 0 {
				c.Status.Capacity.Free[0].Free[k] = q
			}
		}
		w.send(v1beta1.ClustersResource, asUnstructured(c, "Cluster"))
	}
}

func (w *world) send(r schema.GroupVersionResource, u *unstructured.Unstructured) {
	w.versions++
	u.SetUID("u")
	u.SetResourceVersion(fmt.Sprint(w.versions))
	w.resources[r].events.Modify(u.DeepCopy())
}

// written is of how many zones and regions a verdict is written.
func (w *world) written() (n int) {
	for _, u := range w.api.List(v1beta1.ReadinessResource, nil) {
		if verdict(u) != nil {
			n++
		}
	}
	return n
}

func verdict(u *unstructured.Unstructured) *metav1.Condition {
	r := &v1beta1.FailoverReadiness{}
	if u == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, r) != nil {
		return nil
	}
	return meta.FindStatusCondition(r.Status.Conditions, v1beta1.ReadinessSurvivable)
}

// unknown is of how many zones and regions nobody knows whether their loss would be survived.
func (w *world) unknown() (n int) {
	for _, u := range w.api.List(v1beta1.ReadinessResource, nil) {
		if v := verdict(u); v == nil || v.Status == metav1.ConditionUnknown {
			n++
		}
	}
	return n
}

// sampleUnknown counts the unknown each second until ctx is done, and then sends their average.
func (w *world) sampleUnknown(ctx context.Context) <-chan float64 {
	out := make(chan float64, 1)
	go func() {
		sum, n := 0, 0
		for tick := time.Tick(time.Second); ctx.Err() == nil; n++ {
			sum += w.unknown()
			<-tick
		}
		out <- float64(sum) / float64(max(n, 1))
	}()
	return out
}

// survivable is the first zone that is said to be.
func (w *world) survivable() string {
	for _, u := range w.api.List(v1beta1.ReadinessResource, nil) {
		if v := verdict(u); v != nil && v.Status == metav1.ConditionTrue && strings.HasPrefix(u.GetName(), "zone.") {
			return u.GetName()
		}
	}
	return ""
}

// told does something to a zone. It returns how long it takes until the zone is no longer said to be survivable, and until it is said not
// to be: between the two nobody knows.
func (w *world) told(zone string, do func(zone string)) (doubted, denied time.Duration) {
	begun := time.Now()
	w.mu.Lock()
	do(zone)
	w.mu.Unlock()
	for time.Since(begun) < time.Hour {
		v := verdict(w.api.Get(v1beta1.ReadinessResource, "", zone))
		if doubted == 0 && v != nil && v.Status != metav1.ConditionTrue {
			doubted = time.Since(begun)
		}
		if v != nil && v.Status == metav1.ConditionFalse {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	return doubted.Round(100 * time.Millisecond), time.Since(begun).Round(100 * time.Millisecond)
}

// scaleUp has one object ask for more in a zone than all others could take.
func (w *world) scaleUp(zone string) {
	for i, in := range w.at {
		for _, name := range in {
			if w.zoneOf(name) == zone {
				w.update(i, map[string]int64{name: 200000})
				return
			}
		}
	}
}

// loseNodes takes all nodes from the clusters that may have what a zone has, but for one in a hundred: all have room, and too little together.
func (w *world) loseNodes(zone string) {
	for i, c := range w.clusters {
		if w.zoneOf(c.Name) == zone || i%100 == 0 {
			continue
		}
		c = c.DeepCopy()
		c.Status.Capacity.Nodes, c.Status.Capacity.Free = 0, nil
		w.clusters[i] = c
		w.send(v1beta1.ClustersResource, asUnstructured(c, "Cluster"))
	}
}

func (w *world) zoneOf(name string) string {
	for _, c := range w.clusters {
		if c.Name == name {
			return v1beta1.ReadinessName(v1beta1.FailoverReadinessSpec{Zone: c.Status.Region + "/" + c.Status.Zones[0]})
		}
	}
	return ""
}

// Events go nowhere.

func (w *world) Event(runtime.Object, string, string, string)                                      {}
func (w *world) Eventf(runtime.Object, string, string, string, ...any)                             {}
func (w *world) AnnotatedEventf(runtime.Object, map[string]string, string, string, string, ...any) {}
