package servicedns

import (
	"context"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/servicedns/plan"
	"federation/controllers/servicedns/probe"
)

const (
	// writePause is the minimum time between two writes, which batches changes.
	writePause = 200 * time.Millisecond
	// writeAgain is the delay after a failed write.
	writeAgain = 2 * time.Second
)

// runLeader checks the wanted targets and writes the failing ones until ctx ends.
func (c *checks) runLeader(ctx context.Context) {
	if !c.waitUntilKnown(ctx) {
		return
	}
	prober := probe.New(probe.Options{Failing: c.failingByKey(), Refuse: c.refuse, Observe: observeCheck})
	c.due.Signal()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.due:
			prober.Want(ctx, c.targets())
		case <-prober.Changed():
			failing := prober.Failing()
			observeFailing(len(failing))
			if err := c.writeConfigMap(ctx, plan.FormatFailures(failing)); err != nil && ctx.Err() == nil {
				klog.ErrorS(err, "Failed to update failing health checks, will retry", "configMap", v1beta1.DNSHealthChecksConfigMap)
				prober.Again()
				waitFor(ctx, writeAgain)
			}
			waitFor(ctx, writePause)
		}
	}
}

// writeConfigMap writes the failing targets if the ConfigMap differs.
func (c *checks) writeConfigMap(ctx context.Context, text string) error {
	if known := slices.Collect(maps.Values(c.failingByKey())); plan.FormatFailures(known) == text {
		return nil
	}
	want := applycorev1.ConfigMap(v1beta1.DNSHealthChecksConfigMap, v1beta1.FederationNamespace).WithData(map[string]string{v1beta1.DNSHealthChecksFailing: text})
	_, err := c.kube.CoreV1().ConfigMaps(v1beta1.FederationNamespace).Apply(ctx, want, metav1.ApplyOptions{FieldManager: "federation-dns", Force: true})
	return err
}
