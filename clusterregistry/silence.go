package clusterregistry

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/health"
)

// silence is what is said of a member's nodes while they are waited for.
type silence struct {
	of    *Member
	since metav1.Time
	text  string
}

// listenEvery is the time between two looks at the Leases of nodes that are waited for.
const listenEvery = time.Second

// listen waits, in the background, for the nodes of a member that was away, if they are silent (ADR 56).
func (k *keeper) listen(m *Member) {
	begun := time.Now()
	renewed, err := k.renewals(m)
	s := health.Listen(renewed, begun)
	if apierrors.IsForbidden(err) {
		m.lacks("leases.coordination.k8s.io", err)
	}
	if err != nil || s == nil {
		return
	}
	k.silence.Store(&silence{m, metav1.NewTime(begun), s.String()})
	go func() {
		tick := time.NewTicker(listenEvery)
		defer tick.Stop()
		for over := false; !over; {
			select {
			case <-m.ctx.Done():
				return
			case <-tick.C:
			}
			if renewed, err := k.renewals(m); err == nil {
				over = s.Hear(renewed, time.Now())
			}
			k.silence.Store(&silence{m, metav1.NewTime(begun), s.String()})
		}
		k.silence.Store(nil)
		k.lookNow() // to report it
	}()
}

// silent is what the Cluster's status is to say of its nodes; nil: nothing.
func (k *keeper) silent() *v1beta1.ClusterCondition {
	s := k.silence.Load()
	if s == nil || s.of != k.member {
		return nil
	}
	return &v1beta1.ClusterCondition{
		Type: v1beta1.ClusterNodesSilent, Status: corev1.ConditionTrue, Reason: v1beta1.ReasonNodesNotHeardOf,
		Message: s.text, LastTransitionTime: s.since, LastProbeTime: s.since,
	}
}

// renewals are the times at which the nodes' Leases were last renewed.
func (k *keeper) renewals(m *Member) (map[string]time.Time, error) {
	ctx, cancel := context.WithTimeout(m.ctx, k.registry.options.Timeout)
	defer cancel()
	leases, err := m.Core.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		klog.FromContext(m.ctx).V(2).Info("Cannot read the Leases of nodes", "err", err)
		return nil, err
	}
	renewed := make(map[string]time.Time, len(leases.Items))
	for i := range leases.Items {
		if t := leases.Items[i].Spec.RenewTime; t != nil {
			renewed[leases.Items[i].Name] = t.Time
		}
	}
	return renewed, nil
}
