// Package placement decides how the replicas of federated objects divide over the clusters, and
// writes the decision to the object's placement annotation, where propagation reads it.
//
//	c, err := placement.New(options)
//	err = c.Run(ctx)
//
// Writing the decision down costs one write when it changes. It buys a decision that is the same
// after a restart, that anyone can read, and that does not hang on members that cannot be asked.
package placement

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/placement/plan"
)

// DefaultGracePeriod is how long a cluster may be away before its replicas are placed elsewhere.
const DefaultGracePeriod = 30 * time.Second

// divided are the kinds whose replicas are divided, with the annotation of their preferences.
var divided = map[schema.GroupVersionResource]string{
	{Group: "apps", Version: "v1", Resource: "replicasets"}: v1beta1.ReplicaSetPreferencesAnnotation,
	{Group: "apps", Version: "v1", Resource: "deployments"}: v1beta1.DeploymentPreferencesAnnotation,
}

// Options are what a Controller needs.
type Options struct {
	// Client writes to the federation.
	Client dynamic.Interface
	// Informers hands out the federation's informers, which others start.
	Informers func(schema.GroupVersionResource) cache.SharedIndexInformer
	// Recorder takes events about what moved.
	Recorder record.EventRecorder
	// GracePeriod is DefaultGracePeriod if zero.
	GracePeriod time.Duration
}

type key struct {
	resource schema.GroupVersionResource
	types.NamespacedName
}

// Controller places federated objects.
type Controller struct {
	Options
	queue workqueue.TypedRateLimitingInterface[key]
}

// New makes a controller and subscribes it to the informers.
func New(o Options) (*Controller, error) {
	if o.GracePeriod == 0 {
		o.GracePeriod = DefaultGracePeriod
	}
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[key](10*time.Millisecond, 30*time.Second)
	c := &Controller{Options: o, queue: workqueue.NewTypedRateLimitingQueue(limiter)}
	var errs []error
	for resource := range divided {
		errs = append(errs, c.subscribe(resource))
	}
	_, err := o.Informers(v1beta1.ClustersResource).AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { c.all() },
		UpdateFunc: func(was, is any) {
			if before, after := cluster(was), cluster(is); usability(before) != usability(after) {
				c.all()
			}
		},
		DeleteFunc: func(any) { c.all() },
	})
	return c, errors.Join(append(errs, err)...)
}

// usability is what placement looks at in a Cluster.
func usability(c *v1beta1.Cluster) string { return fmt.Sprint(c.IsReady(), c.Labels) }

func (c *Controller) subscribe(resource schema.GroupVersionResource) error {
	wake := func(obj any) {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			c.queue.Add(key{resource, types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}})
		}
	}
	_, err := c.Informers(resource).AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: wake,
		UpdateFunc: func(was, is any) {
			if asks(was, resource) != asks(is, resource) {
				wake(is)
			}
		},
	})
	return err
}

// asks is what placement looks at in a federated object.
func asks(obj any, resource schema.GroupVersionResource) string {
	u := obj.(*unstructured.Unstructured)
	a := u.GetAnnotations()
	replicas, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	return fmt.Sprint(replicas, a[divided[resource]], "\x00", a[v1beta1.ClusterSelectorAnnotation], "\x00", a[v1beta1.PlacementAnnotation])
}

func (c *Controller) all() {
	for resource := range divided {
		for _, k := range c.Informers(resource).GetStore().ListKeys() {
			namespace, name, _ := cache.SplitMetaNamespaceKey(k)
			c.queue.Add(key{resource, types.NamespacedName{Namespace: namespace, Name: name}})
		}
	}
}

// Run works until ctx is done. The informers must have been started.
func (c *Controller) Run(ctx context.Context) error {
	defer c.queue.ShutDown()
	synced := []cache.InformerSynced{c.Informers(v1beta1.ClustersResource).HasSynced}
	for resource := range divided {
		synced = append(synced, c.Informers(resource).HasSynced)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return fmt.Errorf("the federation's caches did not fill: %w", ctx.Err())
	}
	for range 8 {
		go c.work(ctx)
	}
	<-ctx.Done()
	return nil
}

func (c *Controller) work(ctx context.Context) {
	for {
		k, quit := c.queue.Get()
		if quit {
			return
		}
		if err := c.sync(ctx, k); err != nil {
			klog.FromContext(ctx).Error(err, "Placement will be tried again", "resource", k.resource.Resource, "object", k.NamespacedName)
			c.queue.AddRateLimited(k)
		} else {
			c.queue.Forget(k)
		}
		c.queue.Done(k)
	}
}

// sync places one object: one patch, if the placement changed.
func (c *Controller) sync(ctx context.Context, k key) error {
	obj, ok, err := c.Informers(k.resource).GetStore().GetByKey(k.String())
	if err != nil || !ok {
		return err
	}
	u := obj.(*unstructured.Unstructured)
	if u.GetDeletionTimestamp() != nil || !v1beta1.Federated(k.resource.GroupResource(), k.Namespace, k.Name, "") {
		return nil
	}
	object, err := plan.Read(u)
	if err != nil {
		c.Recorder.Event(u, corev1.EventTypeWarning, "PlacementRefused", err.Error())
		return nil // its next change brings it here again
	}
	w := plan.NewWorld(c.clusters(), nil)
	w.Grace = c.GracePeriod
	d := plan.Decide(object, w, time.Now())
	if d.LookAgain > 0 {
		c.queue.AddAfter(k, d.LookAgain)
	}
	if !d.Changed {
		return nil
	}
	value := d.Value()
	if err := c.write(ctx, k, u, value); err != nil {
		return err
	}
	if object.Current != nil && d.Moved != "" {
		c.Recorder.Event(u, corev1.EventTypeNormal, "ReplicasMoved", d.Moved+" ("+d.Cause+")")
	}
	return nil
}

// write puts the placement on the version of the object that it was decided for.
func (c *Controller) write(ctx context.Context, k key, u *unstructured.Unstructured, value string) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": u.GetUID(), "annotations": map[string]string{v1beta1.PlacementAnnotation: value},
	}})
	if err != nil {
		return err
	}
	_, err = c.Client.Resource(k.resource).Namespace(k.Namespace).Patch(ctx, k.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "federation-placement"})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // gone, or another one by now: its event brings us here again
	}
	return err
}

func (c *Controller) clusters() (out []*v1beta1.Cluster) {
	for _, obj := range c.Informers(v1beta1.ClustersResource).GetStore().List() {
		out = append(out, cluster(obj))
	}
	return out
}

// cluster reads a Cluster. What cannot be read counts as not ready.
func cluster(obj any) *v1beta1.Cluster {
	out := &v1beta1.Cluster{}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
			out.Status = v1beta1.ClusterStatus{}
		}
	}
	return out
}
