package servicedns

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/resourceversion"
	"federation/controllers/servicedns/plan"
	"federation/controllers/supervisor"
)

const (
	// conditionWrites is the sustained rate of condition writes per second, conditionBurst the burst: the conditions of
	// many objects may change together, and must not delay other writes.
	conditionWrites, conditionBurst = 20, 50
	// writeTimeout bounds one of these writes.
	writeTimeout = 10 * time.Second
)

// runLeader writes until ctx ends.
func (c *conditions) runLeader(ctx context.Context) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	c.mu.Lock()
	c.queue, c.leads = queue, true
	c.addAll()
	c.mu.Unlock()
	supervisor.ProcessQueue(ctx, "servicedns", queue, func(ctx context.Context, key string) error {
		err := c.sync(ctx, key)
		if err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Failed to update DNS conditions, will retry", "object", key)
		}
		return err
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leads = false
}

// sync writes an object's condition if it differs.
func (c *conditions) sync(ctx context.Context, key string) error {
	kind, name, _ := strings.Cut(key, " ")
	if kind == "Cluster" {
		return c.syncCluster(ctx, name)
	}
	u := c.stores.object(key)
	want := c.conditionOf(key, u)
	switch {
	case kind == plan.KindIngress:
		c.emitEvent(key, u, want)
	case u == nil:
		delete(c.written, key)
	case u.GetDeletionTimestamp() == nil && !c.awaitsWrite(key, u):
		return c.syncService(ctx, u, want)
	}
	return nil
}

// conditionOf returns the condition of an object; nil if it has no names in DNS.
func (c *conditions) conditionOf(key string, u *unstructured.Unstructured) *plan.Condition {
	c.mu.Lock()
	defer c.mu.Unlock()
	var says []plan.Reason
	for _, name := range slices.Sorted(maps.Keys(c.providers)) {
		if said, is := c.providers[name][key]; is && u != nil {
			says = append(says, plan.Reason{Code: said.Code, Message: "provider " + name + ": " + said.Message})
		}
	}
	return c.plans[key].Condition(says)
}

// emitEvent emits an event when the state of an Ingress changes, because its status has no conditions. It reports that all
// is well only after something was not.
func (c *conditions) emitEvent(key string, u *unstructured.Unstructured, want *plan.Condition) {
	before, told := c.told[key]
	if u == nil || want == nil {
		delete(c.told, key)
		return
	}
	if c.told[key] = *want; *want == before || !told && want.Reason == plan.AllPublished {
		return
	}
	kind := corev1.EventTypeNormal
	if !want.Published {
		kind = corev1.EventTypeWarning
	}
	c.recorder.Event(u, kind, "DNS"+want.Reason, want.Message)
}

func (c *conditions) syncService(ctx context.Context, u *unstructured.Unstructured, want *plan.Condition) error {
	is := publishedOf(u)
	if want == nil && is == nil {
		return nil
	}
	if want != nil && is != nil && is.Reason == plan.ProviderOutOfSync && want.Reason != plan.ProviderOutOfSync && c.anyUnread() {
		return nil // another process emitted it, and it may still hold
	}
	status := &corev1.ServiceStatus{}
	if want != nil {
		next := metav1.Condition{Type: v1beta1.ConditionDNSPublished, Status: metav1.ConditionFalse, Reason: want.Reason, Message: want.Message}
		if want.Published {
			next.Status = metav1.ConditionTrue
		}
		if is != nil {
			status.Conditions = []metav1.Condition{*is}
		}
		if !meta.SetStatusCondition(&status.Conditions, next) {
			return nil
		}
	}
	return c.applyStatus(ctx, u, status)
}

func (c *conditions) anyUnread() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.unread) > 0
}

// publishedOf returns the condition of a Service, or nil.
func publishedOf(u *unstructured.Unstructured) *metav1.Condition {
	service := &corev1.Service{}
	status, _, _ := unstructured.NestedMap(u.Object, "status")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"status": status}, service); err != nil {
		return nil // as good as none: it is written again
	}
	return meta.FindStatusCondition(service.Status.Conditions, v1beta1.ConditionDNSPublished)
}

func (c *conditions) syncCluster(ctx context.Context, name string) error {
	obj, _, _ := c.stores.clusters.GetStore().GetByKey(name) // never fails for an in-memory store
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		delete(c.written, clusterKey(name))
		return nil
	}
	if c.awaitsWrite(clusterKey(name), u) {
		return nil
	}
	cluster := clusterOf(u)
	if cluster == nil || cluster.Condition(v1beta1.ClusterReady) == nil || cluster.Status.KubernetesVersion == "" {
		return nil // the cache does not have it yet
	}
	c.mu.Lock()
	known := plan.ClusterOf(cluster, nil)
	example := ""
	if keys := slices.Sorted(maps.Keys(c.invalid[name])); len(keys) > 0 {
		example = c.invalid[name][keys[0]]
	}
	c.mu.Unlock()
	reason, message := known.MissingNames(example)
	is := cluster.Condition(v1beta1.ClusterDNSIncomplete)
	if is == nil && reason == "" || is != nil && is.Reason == reason && is.Message == message {
		return nil
	}
	status := &v1beta1.ClusterStatus{}
	if reason != "" {
		next := v1beta1.ClusterCondition{Type: v1beta1.ClusterDNSIncomplete, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: metav1.Now()}
		if is != nil {
			next.LastTransitionTime = is.LastTransitionTime
		}
		status.Conditions = []v1beta1.ClusterCondition{next}
	}
	return c.applyStatus(ctx, u, status)
}

// applyStatus applies our part of the object's status.
func (c *conditions) applyStatus(ctx context.Context, u *unstructured.Unstructured, status any) error {
	if err := c.limit.Wait(ctx); err != nil {
		return err
	}
	text, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return err
	}
	delete(text, "loadBalancer") // it has no omitempty, and is not ours
	body := &unstructured.Unstructured{Object: map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "status": text}}
	body.SetName(u.GetName())
	body.SetNamespace(u.GetNamespace())
	body.SetUID(u.GetUID())
	resource := v1beta1.ClustersResource
	if u.GetKind() == plan.KindService {
		resource = servicesResource
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	got, err := c.client.Resource(resource).Namespace(u.GetNamespace()).ApplyStatus(ctx, u.GetName(), body, metav1.ApplyOptions{FieldManager: FieldManager, Force: true})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // gone or replaced
	}
	if err == nil {
		key := u.GetKind() + " " + strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/")
		c.written[key] = resourceversion.LeftAt(resourceversion.Of(got))
	}
	return err
}

// awaitsWrite reports whether the object is older than our last write: its event will bring us here again.
func (c *conditions) awaitsWrite(key string, u *unstructured.Unstructured) bool {
	return c.written[key].Unseen(u)
}
