package revisions

import (
	"context"
	"errors"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/held"
	"federation/controllers/supervisor"
)

var (
	replicaSets         = appsv1.SchemeGroupVersion.WithResource("replicasets")
	controllerRevisions = appsv1.SchemeGroupVersion.WithResource("controllerrevisions")
)

// kind is a kind of workloads, and what its revisions are: their kind, their resource, and the label that has the hash of their template.
type kind struct {
	name         string
	resource     schema.GroupVersionResource
	revisionKind string
	revisions    schema.GroupVersionResource
	hashLabel    string
}

var kinds = []*kind{
	{"Deployment", appsv1.SchemeGroupVersion.WithResource("deployments"), "ReplicaSet", replicaSets, appsv1.DefaultDeploymentUniqueLabelKey},
	{"StatefulSet", appsv1.SchemeGroupVersion.WithResource("statefulsets"), "ControllerRevision", controllerRevisions, appsv1.ControllerRevisionHashLabelKey},
	{"DaemonSet", appsv1.SchemeGroupVersion.WithResource("daemonsets"), "ControllerRevision", controllerRevisions, appsv1.ControllerRevisionHashLabelKey},
}

// Times of the controller. What happens to one workload meanwhile is one pass, so a template that is changed again and again costs no more.
const (
	pause        = 200 * time.Millisecond // after a change
	statusPause  = time.Second            // after a change of its status alone
	writeTimeout = 30 * time.Second
	workers      = 4
)

// byOwner is the index of revisions by the UID of their workload.
const byOwner = "owner"

// Options are what a Controller needs.
type Options struct {
	// Client writes to the federation.
	Client dynamic.Interface
	// Informers are the federation's, shared with others and started by them.
	Informers func(schema.GroupVersionResource) cache.SharedIndexInformer
	// Kept are the informers of revisions alone: of what Select selects, and of that what Slim leaves.
	Kept func(schema.GroupVersionResource) cache.SharedIndexInformer
	// Recorder takes events about revisions that cannot be made.
	Recorder record.EventRecorder
}

// Controller keeps revisions. Make it with New.
type Controller struct {
	Options
	queue workqueue.TypedRateLimitingInterface[key]
}

// key is a workload or, where it has no kind, a revision without one.
type key struct {
	kind     *kind
	orphaned schema.GroupVersionResource
	types.NamespacedName
}

// New makes a controller and subscribes it to the informers.
func New(o Options) (*Controller, error) {
	c := &Controller{Options: o, queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[key](pause, 30*time.Second))}
	var errs []error
	for _, k := range kinds {
		_, err := held.By(o.Informers(k.resource)).AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { c.queue.AddAfter(c.keyOf(k, held.About(obj)), pause) },
			UpdateFunc: func(was, is any) { c.changed(k, was, is) },
		})
		errs = append(errs, err)
	}
	for _, r := range []schema.GroupVersionResource{replicaSets, controllerRevisions} {
		kept := o.Kept(r)
		errs = append(errs, kept.AddIndexers(cache.Indexers{byOwner: func(obj any) ([]string, error) { return []string{string(ownerOf(held.Object(obj)).UID)}, nil }}))
		changed := func(obj any) { c.revisionChanged(r, held.Object(obj)) }
		_, err := kept.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: changed, UpdateFunc: func(_, is any) { changed(is) }, DeleteFunc: changed})
		errs = append(errs, err)
	}
	return c, errors.Join(errs...)
}

func (c *Controller) keyOf(k *kind, o held.Named) key {
	return key{kind: k, NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}}
}

// changed takes in another version of a workload. Of its status only a Deployment's counts.
func (c *Controller) changed(k *kind, was, is any) {
	switch {
	case !held.OnlyStatusDiffers(was, is):
		c.queue.AddAfter(c.keyOf(k, held.About(is)), pause)
	case k.revisions == replicaSets:
		c.queue.AddAfter(c.keyOf(k, held.About(is)), statusPause)
	}
}

// revisionChanged takes in that a revision is new, another, or gone.
func (c *Controller) revisionChanged(r schema.GroupVersionResource, u *unstructured.Unstructured) {
	owner := ownerOf(u)
	if owner.UID == "" {
		c.queue.AddAfter(key{orphaned: r, NamespacedName: types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}}, pause)
	}
	for _, k := range kinds {
		if k.name == owner.Kind {
			c.queue.AddAfter(key{kind: k, NamespacedName: types.NamespacedName{Namespace: u.GetNamespace(), Name: owner.Name}}, pause)
		}
	}
}

// ownerOf is the controller of an object; none: without a UID.
func ownerOf(u *unstructured.Unstructured) metav1.OwnerReference {
	if owner := metav1.GetControllerOf(u); owner != nil {
		return *owner
	}
	return metav1.OwnerReference{}
}

// Run works until ctx is done. The informers must have been started.
func (c *Controller) Run(ctx context.Context) error {
	var work sync.WaitGroup
	defer work.Wait()
	defer c.queue.ShutDown()
	synced := []cache.InformerSynced{c.Kept(replicaSets).HasSynced, c.Kept(controllerRevisions).HasSynced}
	for _, k := range kinds {
		synced = append(synced, c.Informers(k.resource).HasSynced)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil // asked to end before there was anything to end
	}
	for range workers {
		work.Go(func() { supervisor.ProcessQueue(ctx, "revisions", c.queue, c.sync) })
	}
	<-ctx.Done()
	return nil
}

func (c *Controller) sync(ctx context.Context, k key) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := c.keep(ctx, k)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Failed to keep revisions, will retry", "object", k.NamespacedName)
	}
	return err
}

// keep brings the revisions of a workload to what they are to be.
func (c *Controller) keep(ctx context.Context, k key) error {
	if k.kind == nil {
		return c.forget(ctx, k)
	}
	obj, there, err := held.By(c.Informers(k.kind.resource)).GetStore().GetByKey(k.String())
	if err != nil || !there || held.About(obj).GetDeletionTimestamp() != nil || v1beta1.OwnNamespace(k.Namespace) {
		return err // the garbage collector deletes those of one that is gone
	}
	u := held.Object(obj)
	kept, err := c.Kept(k.kind.revisions).GetIndexer().ByIndex(byOwner, string(u.GetUID()))
	if err != nil {
		return err
	}
	have := make([]*unstructured.Unstructured, 0, len(kept))
	for _, obj := range kept {
		have = append(have, held.Object(obj))
	}
	return c.write(ctx, k.kind, u, have)
}
