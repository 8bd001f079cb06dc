package clusterregistry

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/health"
)

// writeTimeout bounds a write to the federation's API, so that checks go on while it hangs.
const writeTimeout = 3 * time.Second

// report writes the status when it changed, and an event when the cluster came or went. What
// fails is tried again after the next check. A conflict with a write of what others know of the cluster does not wait for that: at one
// that does not answer, it takes long.
func (k *keeper) report(ctx context.Context, v health.Verdict) {
	if !k.registry.reports() {
		k.unconfirmed = false
		return // another process does
	}
	if t := v.Transition; t != nil {
		k.event(t)
		klog.FromContext(ctx).Info("Cluster changed", "ready", t.Status, "reason", t.Reason, "message", t.Message)
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := k.writeState(ctx)
	for tries := 1; apierrors.IsConflict(err); tries++ {
		decidedFrom := k.known
		if err = k.learnPastCache(ctx); err != nil {
			break
		}
		if tries == reportTries || !health.StillHolds(decidedFrom, k.known) || !k.registry.reports() {
			k.checkNow()
			break
		}
		err = k.writeState(ctx)
	}
	if err != nil && !apierrors.IsNotFound(err) && ctx.Err() != context.Canceled {
		klog.FromContext(ctx).Error(err, "Failed to update the Cluster's status")
	}
}

// reportTries is how often what a check found is written where others write the Cluster meanwhile.
const reportTries = 3

// writeState writes what is known of the cluster where the Cluster's status differs, and the time of the first good check with another address or
// credential: whoever changed them waits for that.
func (k *keeper) writeState(ctx context.Context) error {
	status, changed := health.Report(k.known.Status, k.known.Spec.Topology, k.state, k.inventory.Load())
	confirms := k.unconfirmed && k.state.Failures == 0 && health.CheckedLater(status, k.known.Status)
	if !changed && !confirms {
		return nil
	}
	was := k.known.Status.UID
	err := k.write(ctx, status)
	if err == nil && confirms {
		k.unconfirmed = false
	}
	if err == nil && was != "" && status.UID != was {
		k.reportReplaced(was, status.UID)
	}
	return err
}

func (r *Registry) reports() bool { return r.options.Report == nil || r.options.Report() }

// fieldManager owns what the registry knows of a Cluster. Capacity and failover have others: by server-side apply each
// leaves the others' conditions and fields alone.
const fieldManager = "federation-registry"

// learnPastCache reads the Cluster, which is not what the informer has any more.
func (k *keeper) learnPastCache(ctx context.Context) error {
	u, err := k.registry.dynamic.Resource(v1beta1.ClustersResource).Get(ctx, k.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	c, err := toCluster(u)
	if err == nil {
		k.known = c
	}
	return err
}

// write applies the status to the version of the Cluster that it was decided from, and to no other: a process that reported before may
// write late.
func (k *keeper) write(ctx context.Context, s v1beta1.ClusterStatus) error {
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s)
	if err != nil {
		return err
	}
	u, err := k.registry.dynamic.Resource(v1beta1.ClustersResource).ApplyStatus(ctx, k.name, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": "Cluster",
		"metadata": map[string]any{"name": k.name, "uid": string(k.known.UID), "resourceVersion": k.known.ResourceVersion}, "status": status,
	}}, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err != nil {
		return err
	}
	c, err := toCluster(u)
	if err == nil {
		k.known = c
	}
	return err
}

func (k *keeper) event(ready *v1beta1.ClusterCondition) {
	kind := corev1.EventTypeWarning
	if ready.Status == corev1.ConditionTrue {
		kind = corev1.EventTypeNormal
	}
	k.registry.options.Recorder.Event(k.reference(), kind, ready.Reason, ready.Message)
}

// tellLacking returns what tells, from any goroutine, what the cluster does not let us see.
func (k *keeper) tellLacking() func(resource string, err error) {
	reference, logger := k.reference(), klog.Background().WithValues("cluster", k.name)
	return func(resource string, err error) {
		logger.Info("The cluster refuses a list or a watch", "resource", resource, "err", err)
		if k.registry.reports() {
			k.registry.options.Recorder.Event(reference, corev1.EventTypeWarning, "MissingPermissions", missingPermission(resource, err))
		}
	}
}

func (k *keeper) reference() *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "Cluster", Name: k.name, UID: k.known.UID}
}
