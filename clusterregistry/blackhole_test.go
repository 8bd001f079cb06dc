package clusterregistry

import (
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// Each renewal of a drill that takes a member from its clients goes on to its node agents, past the barrier, while it is young; and so does its end.
func TestADrillBlackholesAMember(t *testing.T) {
	f, east, west := newFleet(t), newFakeMember(t), newFakeMember(t)
	east.agents, west.agents = &coordinationv1.Lease{}, &coordinationv1.Lease{}
	east.agents.Name, west.agents.Name = v1beta1.DrillLease, v1beta1.DrillLease
	f.join("east", east, "good")
	f.join("west", west, "good")
	f.eventuallyReady("east", v1beta1.ReasonClusterReady)
	f.eventuallyReady("west", v1beta1.ReasonClusterReady)
	is := v1beta1.Isolation{As: v1beta1.IsolateSilent, Clusters: []string{"east"}, Blackhole: true}
	f.renew(is, time.Now())
	f.eventually("held", func() bool { holder, _ := east.heldBy(); return holder == "drill" })
	f.eventuallyReady("east", v1beta1.ReasonClusterNotReachable)
	f.eventually("known", func() bool { return slices.Equal(f.Blackholed(), []string{"east"}) })
	_, first := east.heldBy()
	f.renew(is, time.Now().Add(time.Second))
	f.eventually("renewed", func() bool { _, renewed := east.heldBy(); return renewed.After(first) })
	_, second := east.heldBy()
	if time.Sleep(time.Second); true { // nobody renews the drill's Lease
		if _, renewed := east.heldBy(); !renewed.Equal(second) {
			t.Error("renewed without a renewal by the drill")
		}
	}
	if holder, _ := west.heldBy(); holder != "" {
		t.Errorf("the Lease of a cluster that is not named is held by %s", holder)
	}
	if err := f.core.CoordinationV1().Leases(v1beta1.FederationNamespace).Delete(t.Context(), v1beta1.DrillLease, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.eventually("released", func() bool { holder, _ := east.heldBy(); return holder == "" && len(f.Blackholed()) == 0 })
	f.eventuallyReady("east", v1beta1.ReasonClusterReady)
}

// A member without that Lease is isolated, and not taken for one that is blackholed.
func TestAMemberWithoutAgentsIsNotBlackholed(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	f.join("east", east, "good")
	f.eventuallyReady("east", v1beta1.ReasonClusterReady)
	f.renew(v1beta1.Isolation{As: v1beta1.IsolateRefused, Clusters: []string{"east"}, Blackhole: true}, time.Now())
	f.eventuallyReady("east", v1beta1.ReasonClusterNotReachable)
	f.eventually("asked", func() bool { return len(east.seen(agentsPath)) > 0 })
	if got := f.Blackholed(); len(got) > 0 {
		t.Errorf("blackholed: %v", got)
	}
}

func TestWhichNodesHaveAnAgentThatMayBlackhole(t *testing.T) {
	node := func(name string, ready corev1.ConditionStatus) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
	}
	agent := func(on string, ready corev1.ConditionStatus, args ...string) corev1.Pod {
		return corev1.Pod{Spec: corev1.PodSpec{NodeName: on, Containers: []corev1.Container{{Args: args}}},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}}}
	}
	const flag = "--blackhole-lease=federation-system/failover-drill"
	going := agent("going", corev1.ConditionTrue, flag)
	going.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	nodes := []corev1.Node{node("a", corev1.ConditionTrue), node("without", corev1.ConditionTrue), node("not-told", corev1.ConditionTrue),
		node("not-ready", corev1.ConditionTrue), node("going", corev1.ConditionTrue), node("dead", corev1.ConditionFalse)}
	pods := []corev1.Pod{agent("a", corev1.ConditionTrue, "--proxy-mode=nftables", flag), agent("not-told", corev1.ConditionTrue, "--proxy-mode=nftables"),
		agent("not-ready", corev1.ConditionFalse, flag), going, agent("dead", corev1.ConditionTrue, flag)}
	if ready, able := countAgents(nodes, pods); ready != 5 || able != 1 {
		t.Errorf("%d of %d, want 1 of 5", able, ready)
	}
}
