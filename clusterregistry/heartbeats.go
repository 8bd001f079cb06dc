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
	"federation/controllers/supervisor"
)

// listenEvery is the time between two reads of the Leases of nodes that are waited for.
const listenEvery = time.Second

// awaitHeartbeats waits, in the background, for the nodes of a member that was away, if they are silent (ADR 56). It goes on with a
// wait that the end of the Member before, or of the federation, has cut off.
func (k *keeper) awaitHeartbeats(m *Member) {
	cut, since := k.heartbeats.Load(), metav1.Now()
	if cut != nil && !k.away {
		since = cut.LastTransitionTime
	}
	s := health.NewHeartbeatTracker(since.Time, cut != nil)
	said := k.readHeartbeats(m, s, since)
	k.heartbeats.Store(said)
	if said != nil {
		go supervisor.Keep(m.ctx, "registry", func(context.Context) { k.keepListening(m, s, said) })
	}
}

// keepListening ends when the nodes are waited for no more, or for another Member.
func (k *keeper) keepListening(m *Member, s *health.HeartbeatTracker, said *v1beta1.ClusterCondition) {
	tick := time.NewTicker(listenEvery)
	defer tick.Stop()
	for said != nil {
		select {
		case <-m.ctx.Done():
			return
		case <-tick.C:
		}
		heard := k.readHeartbeats(m, s, said.LastTransitionTime)
		if !k.heartbeats.CompareAndSwap(said, heard) {
			return
		}
		said = heard
	}
	k.checkNow() // to report it
}

// readHeartbeats reads once, and returns what is to be said then; nil: the nodes are waited for no more.
func (k *keeper) readHeartbeats(m *Member, s *health.HeartbeatTracker, since metav1.Time) *v1beta1.ClusterCondition {
	renewed, err := k.renewals(m)
	if apierrors.IsForbidden(err) {
		m.lacks("leases.coordination.k8s.io", err)
		return nil
	}
	if s.Observe(renewed, time.Now()) {
		return nil
	}
	return &v1beta1.ClusterCondition{
		Type: v1beta1.ClusterNodeHeartbeatsStale, Status: corev1.ConditionTrue, Reason: v1beta1.ReasonLeasesNotRenewed,
		Message: s.String(), LastTransitionTime: since, LastProbeTime: since,
	}
}

// heartbeatsCondition returns what the Cluster's status is to say of its nodes; nil: nothing.
func (k *keeper) heartbeatsCondition() *v1beta1.ClusterCondition {
	if !k.state.Ready() {
		return nil
	}
	return k.heartbeats.Load()
}

// renewals are the times at which the nodes' Leases were last renewed; nil with an error.
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
