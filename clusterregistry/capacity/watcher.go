package capacity

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry"
	"federation/clusterregistry/capacity/room"
	"federation/clusterregistry/limits"
	"federation/controllers/supervisor"
)

// FieldManager owns Cluster.status.capacity.
const FieldManager = "federation-capacity"

// writeTimeout bounds a request to the federation.
const writeTimeout = 5 * time.Second

// Options are what an Engager needs. Only Client is required.
type Options struct {
	// Client writes to the federation.
	Client dynamic.Interface
	// Every is the least time between two writes about a member; 5 s if zero.
	Every time.Duration
	// Urgent is the same for news of pods that find no room, and between two sums; 1 s if zero.
	Urgent time.Duration
	// Unschedulable is how long a pod must have found no room to count; 60 s if zero.
	Unschedulable time.Duration
}

// Engager takes up each member. Make it with New.
type Engager struct{ Options }

// New makes an Engager.
func New(o Options) Engager {
	o.Every = cmp.Or(o.Every, 5*time.Second)
	o.Urgent = cmp.Or(o.Urgent, time.Second)
	o.Unschedulable = cmp.Or(o.Unschedulable, time.Minute)
	return Engager{o}
}

// Engage implements clusterregistry.Engager: it watches the member until ctx is done.
func (e Engager) Engage(ctx context.Context, m *clusterregistry.Member) error {
	return e.watch(ctx, m.Name, m.Core, m.Meter, m.WatchFailed)
}

func (e Engager) watch(ctx context.Context, name string, client kubernetes.Interface, meter *limits.Meter, failed func(context.Context, string, error) bool) error {
	// Pods that have ended take no room; the member does not even send them.
	running := func(o *metav1.ListOptions) {
		o.FieldSelector = "status.phase!=" + string(corev1.PodSucceeded) + ",status.phase!=" + string(corev1.PodFailed)
	}
	nodes := informers.NewSharedInformerFactory(client, 0).Core().V1().Nodes().Informer()
	pods := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(running)).Core().V1().Pods().Informer()
	w := &watcher{Options: e.Options, name: name, nodes: nodes, pods: pods, wake: supervisor.NewWake()}
	for resource, i := range map[string]cache.SharedIndexInformer{"nodes": nodes, "pods": pods} {
		if err := i.SetTransform(meteredTransform(meter)); err != nil {
			return err
		}
		if err := i.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
			if !failed(ctx, resource, err) {
				cache.DefaultWatchErrorHandler(ctx, r, err)
			}
		}); err != nil {
			return err
		}
		if _, err := i.AddEventHandler(w.handler()); err != nil {
			return err
		}
		go i.RunWithContext(ctx)
	}
	go supervisor.Keep(ctx, "capacity", w.run)
	return nil
}

// watcher sums up one member.
type watcher struct {
	Options
	name        string
	nodes, pods cache.SharedIndexInformer
	wake        supervisor.Wake

	// The rest belongs to the goroutine of run.
	uid     string // "" where the Cluster is to be read again
	version string
	written *v1beta1.ClusterCapacity // what the Cluster says; nil where nothing, or it is not known
	at      time.Time                // of the last write
}

func (w *watcher) handler() cache.ResourceEventHandler {
	wake := func(any) { w.wake.Signal() }
	return cache.ResourceEventHandlerFuncs{AddFunc: wake, DeleteFunc: wake, UpdateFunc: func(was, is any) {
		if !sameState(was, is) {
			wake(is)
		}
	}}
}

func (w *watcher) run(ctx context.Context) {
	if cache.WaitForCacheSync(ctx.Done(), w.nodes.HasSynced, w.pods.HasSynced) {
		w.wake.Repeat(ctx, w.Urgent, w.sumUp)
	}
}

// sumUp sums up, and writes if that is due. It returns when to come again though nothing changes; 0: not at all.
func (w *watcher) sumUp(ctx context.Context) time.Duration {
	now := time.Now()
	if w.uid == "" {
		if err := w.readStatus(ctx); err != nil {
			return w.retry(ctx, err)
		}
	}
	s := w.summarize(now)
	if w.written == nil || !room.SameCapacity(w.written, &s.ClusterCapacity) {
		due := w.at.Add(w.Every)
		if w.written != nil && now.Before(due) && !room.HasMoreUnschedulable(w.written, &s.ClusterCapacity) {
			return due.Sub(now)
		}
		if err := w.write(ctx, &s.ClusterCapacity); apierrors.IsConflict(err) {
			w.uid = ""
			return time.Millisecond
		} else if err != nil {
			return w.retry(ctx, err)
		}
		w.written, w.at = &s.ClusterCapacity, now
	}
	if s.Next.IsZero() {
		return 0
	}
	return max(s.Next.Sub(now), time.Millisecond)
}

func (w *watcher) retry(ctx context.Context, err error) time.Duration {
	if ctx.Err() == nil && !apierrors.IsNotFound(err) {
		klog.FromContext(ctx).Error(err, "Failed to update the Cluster's capacity", "cluster", w.name)
	}
	w.uid = "" // it may be another Cluster by now
	return w.Every
}

func (w *watcher) summarize(now time.Time) room.Summary {
	var nodes []room.Node
	for _, obj := range w.nodes.GetStore().List() {
		nodes = append(nodes, obj.(*node).Node)
	}
	list := w.pods.GetStore().List()
	pods := make([]room.Pod, 0, len(list))
	for _, obj := range list {
		pods = append(pods, obj.(*pod).Pod)
	}
	return room.Summarize(nodes, pods, room.Settings{Unschedulable: w.Unschedulable}, now)
}

// readStatus reads what the Cluster says so far, so that a new connection writes only what is new.
func (w *watcher) readStatus(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	u, err := w.Client.Resource(v1beta1.ClustersResource).Get(ctx, w.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	c := &v1beta1.Cluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, c); err != nil {
		return err
	}
	w.uid, w.version, w.written = string(c.UID), c.ResourceVersion, c.Status.Capacity
	return nil
}

// write applies the capacity to the version of the Cluster that was last seen, and to no other: a process that wrote before may write
// late, and nothing would correct it until the capacity changes.
func (w *watcher) write(ctx context.Context, capacity *v1beta1.ClusterCapacity) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	value, err := runtime.DefaultUnstructuredConverter.ToUnstructured(capacity)
	if err != nil {
		return err
	}
	u, err := w.Client.Resource(v1beta1.ClustersResource).ApplyStatus(ctx, w.name, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": "Cluster",
		"metadata": map[string]any{"name": w.name, "uid": w.uid, "resourceVersion": w.version}, "status": map[string]any{"capacity": value},
	}}, metav1.ApplyOptions{FieldManager: FieldManager, Force: true})
	if err == nil {
		w.version = u.GetResourceVersion()
	}
	return err
}
