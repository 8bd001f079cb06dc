package clusterregistry

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
		k.cluster.event(t)
		klog.FromContext(ctx).Info("Cluster changed", "ready", t.Status, "reason", t.Reason, "message", t.Message)
	}
	if _, _, news := k.news(); !news {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := k.writeState(ctx)
	for tries := 1; apierrors.IsConflict(err); tries++ {
		decidedFrom := k.cluster.known
		if err = k.cluster.learnPastCache(ctx); err != nil {
			break
		}
		if tries == reportTries || !health.StillHolds(decidedFrom, k.cluster.known) || !k.registry.reports() {
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
	status, confirms, news := k.news()
	if !news {
		return nil
	}
	was := k.cluster.known.Status.UID
	err := k.cluster.write(ctx, status)
	if err == nil && confirms {
		k.unconfirmed = false
	}
	if err == nil && was != "" && status.UID != was {
		k.cluster.reportReplaced(was, status.UID)
	}
	return err
}

// news returns what the Cluster's status is to be, whether that confirms what people have changed, and whether it has to be written.
func (k *keeper) news() (status v1beta1.ClusterStatus, confirms, news bool) {
	status, changed := health.Report(k.cluster.known.Status, k.cluster.known.Spec.Topology, k.state, k.inventory.Load())
	confirms = k.unconfirmed && k.state.Failures == 0 && health.CheckedLater(status, k.cluster.known.Status)
	return status, confirms, changed || confirms
}

func (r *Registry) reports() bool { return r.options.Report == nil || r.options.Report() }
