package clusterregistry

import (
	"context"
	"sync/atomic"
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

// heartbeats says whether the nodes of a member that was away are waited for, if they are silent (ADR 56).
type heartbeats struct {
	away  bool // it was not ready before, and has no Member since
	found bool // it had joined before this process started, and has had no Member since
	// stale is NodeHeartbeatsStale, while nodes are waited for; it outlives the Member. heard: it is known whether they are. Any goroutine may read both.
	stale atomic.Pointer[v1beta1.ClusterCondition]
	heard atomic.Bool
	// alive is when it was last found that no node is waited for, in Unix nanoseconds.
	alive atomic.Int64
	// adopted is the date of the condition that was last taken over from another process.
	adopted metav1.Time
	// changed is called, from any goroutine, when the nodes are waited for no more.
	changed func()
}

// restore takes up what the Cluster says when this process begins.
func (h *heartbeats) restore(conditions []v1beta1.ClusterCondition, stale *v1beta1.ClusterCondition) {
	h.found = len(conditions) > 0
	h.stale.Store(stale)
}

// needed reports whether it has to be found out if the nodes of a cluster that is taken up are silent. Of a cluster that a process finds it is
// not known whether it was away: nobody may have been able to write that.
func (h *heartbeats) needed() bool { return h.away || h.found || h.stale.Load() != nil }

// silent reports whether the nodes have not been heard of yet, as far as is known. Any goroutine may ask.
func (h *heartbeats) silent() bool { return !h.heard.Load() || h.stale.Load() != nil }

// connecting begins a Member.
func (h *heartbeats) connecting() { h.heard.Store(!h.needed()) }

// connected waits, in the background, for the nodes of a Member that was away, if they are silent. It goes on with a
// wait that the end of the Member before, or of the federation, has cut off. A read may take timeout.
func (h *heartbeats) connected(m *Member, timeout time.Duration) {
	if h.needed() {
		cut, since := h.stale.Load(), metav1.Now()
		if cut != nil && !h.away {
			since = cut.LastTransitionTime
		} else {
			h.adopted = metav1.Time{}
		}
		w := &nodeWait{m, timeout, health.NewHeartbeatTracker(since.Time, cut != nil)}
		stale := w.read(since)
		h.stale.Store(stale)
		if stale != nil {
			go supervisor.Keep(m.ctx, "registry", func(context.Context) { h.keepListening(w, stale) })
		}
		h.away, h.found = false, false
	}
	if h.stale.Load() == nil {
		h.noteAlive()
	}
	h.heard.Store(true)
}

// noteAlive notes that no node is waited for now.
func (h *heartbeats) noteAlive() { h.alive.Store(time.Now().UnixNano()) }

// adopt takes over the condition that another process has written since the nodes were last found alive here, and waits for them as well. Without that, a
// process that stood still while the cluster was away would remove the condition as soon as it leads. said is the Cluster's condition; nil ends the wait.
// m is nil while the cluster is not connected.
func (h *heartbeats) adopt(said *v1beta1.ClusterCondition, m *Member, timeout time.Duration) {
	stale := h.stale.Load()
	switch {
	case stale != nil && said == nil && !h.adopted.IsZero():
		h.noteAlive()
		h.stale.Store(nil)
	case stale == nil && said != nil && said.LastTransitionTime.UnixNano() > h.alive.Load() && !said.LastTransitionTime.Equal(&h.adopted): // once: that clock may be ahead
		h.adopted = said.LastTransitionTime
		h.stale.Store(said)
		if m != nil {
			h.connected(m, timeout)
		}
	}
}

// keepListening ends when the nodes are waited for no more, or for another Member.
func (h *heartbeats) keepListening(w *nodeWait, said *v1beta1.ClusterCondition) {
	tick := time.NewTicker(listenEvery)
	defer tick.Stop()
	for said != nil {
		select {
		case <-w.member.ctx.Done():
			return
		case <-tick.C:
		}
		heard := w.read(said.LastTransitionTime)
		if heard == nil {
			h.noteAlive()
		}
		if !h.stale.CompareAndSwap(said, heard) {
			return
		}
		said = heard
	}
	h.changed() // to report it
}

// condition returns what the Cluster's status is to say of its nodes; nil: nothing.
func (h *heartbeats) condition(ready bool) *v1beta1.ClusterCondition {
	if !ready {
		return nil
	}
	return h.stale.Load()
}

// nodeWait waits for the nodes of one Member.
type nodeWait struct {
	member  *Member
	timeout time.Duration
	tracker *health.HeartbeatTracker
}

// read reads once, and returns what is to be said then; nil: the nodes are waited for no more.
func (w *nodeWait) read(since metav1.Time) *v1beta1.ClusterCondition {
	renewed, err := w.renewals()
	if apierrors.IsForbidden(err) {
		w.member.lacks("leases.coordination.k8s.io", err)
		return nil
	}
	if w.tracker.Observe(renewed, time.Now()) {
		return nil
	}
	return &v1beta1.ClusterCondition{
		Type: v1beta1.ClusterNodeHeartbeatsStale, Status: corev1.ConditionTrue, Reason: v1beta1.ReasonLeasesNotRenewed,
		Message: w.tracker.String(), LastTransitionTime: since, LastProbeTime: since,
	}
}

// renewals are the times at which the nodes' Leases were last renewed; nil with an error.
func (w *nodeWait) renewals() (map[string]time.Time, error) {
	m := w.member
	ctx, cancel := context.WithTimeout(m.ctx, w.timeout)
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
