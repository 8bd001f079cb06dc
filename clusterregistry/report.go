package clusterregistry

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/health"
)

// writeTimeout bounds a write to the federation's API, so that looks go on while it hangs.
const writeTimeout = 3 * time.Second

// report writes the status when it changed, and an event when the cluster came or went. What
// fails is tried again after the next look.
func (k *keeper) report(ctx context.Context, v health.Verdict) {
	if !k.registry.reports() {
		return // another process does
	}
	if t := v.Transition; t != nil {
		k.event(t)
		klog.FromContext(ctx).Info("Cluster changed", "ready", t.Status, "reason", t.Reason, "message", t.Message)
	}
	status, changed := health.Report(k.known.Status, k.state, k.inventory.Load())
	if !changed {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := k.write(ctx, status); err != nil && !apierrors.IsNotFound(err) && ctx.Err() != context.Canceled {
		klog.FromContext(ctx).Error(err, "Cannot write the status of the Cluster")
	}
}

func (r *Registry) reports() bool { return r.options.Report == nil || r.options.Report() }

func (k *keeper) write(ctx context.Context, s v1beta1.ClusterStatus) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"conditions": s.Conditions, "zones": s.Zones, "region": orNull(s.Region), "kubernetesVersion": orNull(s.KubernetesVersion),
	}})
	if err != nil {
		return err
	}
	u, err := k.registry.dynamic.Resource(v1beta1.ClustersResource).Patch(ctx, k.name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return err
	}
	c, err := toCluster(u)
	if err == nil {
		k.known = c
	}
	return err
}

// orNull is what takes a field away in a merge patch.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func (k *keeper) event(ready *v1beta1.ClusterCondition) {
	kind := corev1.EventTypeWarning
	if ready.Status == corev1.ConditionTrue {
		kind = corev1.EventTypeNormal
	}
	k.registry.recorder.Event(k.reference(), kind, ready.Reason, ready.Message)
}

func (k *keeper) reference() *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "Cluster", Name: k.name, UID: k.known.UID}
}
