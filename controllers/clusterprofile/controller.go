// Package clusterprofile keeps a ClusterProfile for each Cluster, in the federation's own namespace: what SIG
// Multicluster's Cluster Inventory API (KEP-4322) has of a cluster, which Argo CD, Kueue and multicluster-runtime read.
//
//	profiles, err := clusterprofile.New(clusterprofile.Options{Client: client, Informers: informers, Federation: of})
//	err = profiles.Run(ctx)   // in the process that leads
//
// What is to be written is decided in package plan. Profiles of other cluster managers are left alone.
package clusterprofile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/clusterprofile/plan"
	"federation/controllers/held"
	"federation/controllers/supervisor"
)

const (
	fieldManager = "federation-clusterprofiles"
	writeTimeout = 30 * time.Second
	// settle is how long a Cluster may go on changing until its profile follows.
	settle = 200 * time.Millisecond
)

// Options are what a Controller needs.
type Options struct {
	// Client writes to the federation.
	Client dynamic.Interface
	// Informers are the federation's, shared with others and started by them.
	Informers func(schema.GroupVersionResource) cache.SharedIndexInformer
	// Federation is what all profiles have in common.
	Federation plan.Federation
}

// Controller keeps the profiles. Make it with New.
type Controller struct {
	Options
	clusters, profiles cache.SharedIndexInformer
	queue              workqueue.TypedRateLimitingInterface[string] // names of Clusters
}

// New returns a Controller. It must be called before the informers start.
func New(o Options) (*Controller, error) {
	c := &Controller{
		Options: o, clusters: o.Informers(v1beta1.ClustersResource), profiles: o.Informers(plan.Resource),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](100*time.Millisecond, time.Minute)),
	}
	add := func(obj any) { c.queue.AddAfter(held.About(obj).GetName(), settle) }
	handler := cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, is any) { add(is) }, DeleteFunc: add}
	_, err := c.clusters.AddEventHandler(handler)
	_, err2 := c.profiles.AddEventHandler(handler)
	return c, errors.Join(err, err2)
}

// Run keeps the profiles until ctx is done.
func (c *Controller) Run(ctx context.Context) error {
	defer c.queue.ShutDown()
	if cache.WaitForCacheSync(ctx.Done(), c.clusters.HasSynced, c.profiles.HasSynced) {
		supervisor.ProcessQueue(ctx, "clusterprofile", c.queue, c.sync)
	}
	return nil
}

// sync makes the profile of one Cluster as it should be.
func (c *Controller) sync(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	profiles := c.Client.Resource(plan.Resource).Namespace(v1beta1.FederationNamespace)
	is := find(c.profiles, v1beta1.FederationNamespace+"/"+name)
	if is != nil && is.GetLabels()[plan.ManagerLabel] != c.Federation.Name {
		return nil // it is another manager's
	}
	u := find(c.clusters, name)
	if u == nil {
		if is == nil {
			return nil
		}
		uid := is.GetUID()
		err := profiles.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		return err
	}
	cluster := &v1beta1.Cluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, cluster); err != nil {
		return fmt.Errorf("read the Cluster: %w", err)
	}
	want := plan.Profile(c.Federation, cluster)
	if is == nil || !equality.Semantic.DeepEqual(is.Object["spec"], want.Object["spec"]) || !equality.Semantic.DeepEqual(is.GetLabels(), want.GetLabels()) {
		if _, err := profiles.Apply(ctx, name, without(want, "status"), metav1.ApplyOptions{FieldManager: fieldManager, Force: true}); err != nil {
			return err
		}
	}
	if is == nil || !equality.Semantic.DeepEqual(is.Object["status"], want.Object["status"]) {
		_, err := profiles.ApplyStatus(ctx, name, without(want, "spec"), metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		return err
	}
	return nil
}

// find returns what an informer has, or nil.
func find(in cache.SharedIndexInformer, key string) *unstructured.Unstructured {
	obj, there, err := in.GetStore().GetByKey(key)
	if err != nil || !there {
		return nil
	}
	return held.Object(obj)
}

// without returns a copy of an object that lacks a field.
func without(u *unstructured.Unstructured, field string) *unstructured.Unstructured {
	u = u.DeepCopy()
	delete(u.Object, field)
	return u
}
