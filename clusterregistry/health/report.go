package health

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"

	"federation/apiserver/apis/federation/v1beta1"
)

// Inventory is what a cluster says of itself apart from its health.
type Inventory struct {
	// Zones of its nodes, sorted, without duplicates.
	Zones []string
	// Region of its nodes, "" where no node is labelled.
	Region string
	// Version of its API server, such as "v1.36.3".
	Version string
	// Forbidden are the kinds that we may not list there, as RESOURCE.GROUP, sorted.
	Forbidden []string
	// Unfenced: it lets the federation's account write what the federation does not manage.
	Unfenced bool
}

// maxZones is how many zones of a cluster are taken: each is a name for each of its Services.
const maxZones = 16

// OwnConditions returns the conditions that are ours to write: Ready, Offline, AgentConnected, NodeHeartbeatsStale, TopologyMismatch and FencesMissing.
func OwnConditions(conditions []v1beta1.ClusterCondition) (own []v1beta1.ClusterCondition) {
	for _, c := range conditions {
		switch c.Type {
		case v1beta1.ClusterReady, v1beta1.ClusterOffline, v1beta1.ClusterAgentConnected, v1beta1.ClusterNodeHeartbeatsStale, v1beta1.ClusterTopologyMismatch, v1beta1.ClusterFencesMissing:
			own = append(own, c)
		}
	}
	return own
}

// Restore returns the State that a Cluster's conditions tell of, before the first check.
func Restore(conditions []v1beta1.ClusterCondition) (s State) {
	for _, c := range OwnConditions(conditions) {
		switch c.Type {
		case v1beta1.ClusterNodeHeartbeatsStale:
			s.Heartbeats = &c
		case v1beta1.ClusterReady, v1beta1.ClusterOffline:
			s.Conditions = append(s.Conditions, c)
		}
	}
	return s
}

// Report returns what the status of a Cluster should have of us, and whether that differs from what it has
// in anything but the time of the last check. A nil inventory keeps what is there: zones are not
// forgotten while a cluster is away. What the operator has pinned of its topology is so, whatever its nodes say.
func Report(prev v1beta1.ClusterStatus, pinned *v1beta1.ClusterTopology, s State, inv *Inventory) (v1beta1.ClusterStatus, bool) {
	next := v1beta1.ClusterStatus{Zones: slices.Clone(prev.Zones), Region: prev.Region, UID: cmp.Or(s.UID, prev.UID), KubernetesVersion: prev.KubernetesVersion, InaccessibleResources: slices.Clone(prev.InaccessibleResources)}
	next.Conditions = slices.Clone(s.Conditions)
	if s.Heartbeats != nil {
		next.Conditions = append(next.Conditions, *s.Heartbeats)
	}
	if s.Agent != nil {
		was := findCondition(prev.Conditions, s.Agent.Type)
		if was != nil && was.Status != s.Agent.Status {
			was = nil
		}
		next.Conditions = append(next.Conditions, *keepTransitionTime(was, s, *s.Agent))
	}
	if inv != nil {
		next.Zones, next.Region, next.KubernetesVersion, next.InaccessibleResources = inv.Zones, inv.Region, inv.Version, inv.Forbidden
	}
	for _, c := range []*v1beta1.ClusterCondition{topologyMismatch(prev.Conditions, pinned, s, inv), fencesMissing(prev.Conditions, s, inv)} {
		if c != nil {
			next.Conditions = append(next.Conditions, *c)
		}
	}
	applyPinned(&next, pinned)
	same := next.UID == prev.UID && next.Region == prev.Region && next.KubernetesVersion == prev.KubernetesVersion &&
		slices.Equal(next.Zones, prev.Zones) && slices.Equal(next.InaccessibleResources, prev.InaccessibleResources) && sameConditions(next.Conditions, OwnConditions(prev.Conditions))
	return next, !same
}

// CheckedLater reports whether the cluster is ready in a status, by a check in a later second than that of an earlier status: times are stored in seconds.
func CheckedLater(s, earlier v1beta1.ClusterStatus) bool {
	ready, was := findCondition(s.Conditions, v1beta1.ClusterReady), findCondition(earlier.Conditions, v1beta1.ClusterReady)
	return ready != nil && ready.Status == corev1.ConditionTrue && (was == nil || ready.LastProbeTime.Unix() > was.LastProbeTime.Unix())
}

// StillHolds reports whether what a check of a Cluster found can be said of a later version of it: it means the same cluster, which has not joined again, and
// nobody else has reported on its health meanwhile.
func StillHolds(checked, is *v1beta1.Cluster) bool {
	return checked.UID == is.UID && checked.Annotations[v1beta1.JoinAnnotation] == is.Annotations[v1beta1.JoinAnnotation] && equality.Semantic.DeepEqual(checked.Spec, is.Spec) && checked.Status.UID == is.Status.UID &&
		sameConditions(OwnConditions(checked.Status.Conditions), OwnConditions(is.Status.Conditions))
}

// applyPinned puts what is pinned into a status.
func applyPinned(s *v1beta1.ClusterStatus, pinned *v1beta1.ClusterTopology) {
	if pinned == nil {
		return
	}
	if pinned.Region != "" {
		s.Region = pinned.Region
	}
	if len(pinned.Zones) > 0 {
		s.Zones = slices.Sorted(slices.Values(pinned.Zones))
	}
}

// topologyMismatch returns the condition that nodes say something else than what is pinned; nil where they do not. Of a cluster that is away, what was
// known stays.
func topologyMismatch(prev []v1beta1.ClusterCondition, pinned *v1beta1.ClusterTopology, s State, inv *Inventory) *v1beta1.ClusterCondition {
	was := findCondition(prev, v1beta1.ClusterTopologyMismatch)
	switch {
	case pinned == nil:
		return nil
	case inv == nil:
		return was
	}
	var said []string
	if pinned.Region != "" && inv.Region != "" && inv.Region != pinned.Region {
		said = append(said, fmt.Sprintf("region %q is not %q", inv.Region, pinned.Region))
	}
	for _, zone := range inv.Zones {
		if len(pinned.Zones) > 0 && !slices.Contains(pinned.Zones, zone) {
			said = append(said, fmt.Sprintf("zone %q is not among %q", zone, pinned.Zones))
		}
	}
	if len(said) == 0 {
		return nil
	}
	return keepTransitionTime(was, s, condition(v1beta1.ClusterTopologyMismatch, corev1.ConditionTrue, v1beta1.ReasonNodeLabelsDiffer,
		"spec.topology counts; labels of nodes say otherwise: "+strings.Join(said, ", ")))
}

// AgentCondition returns the condition that says whether a cluster's agent is connected, and of which version it says that it is.
func AgentCondition(version string, connected bool) v1beta1.ClusterCondition {
	if !connected {
		return condition(v1beta1.ClusterAgentConnected, corev1.ConditionFalse, v1beta1.ReasonNoAgent, "no agent of the cluster is connected to the federation")
	}
	return condition(v1beta1.ClusterAgentConnected, corev1.ConditionTrue, v1beta1.ReasonAgentConnected, strings.TrimSpace("agent "+version)+" is connected")
}

// fencesMissing returns the condition that no fences hold our account; nil where they do. Of a cluster that is away, what was known stays.
func fencesMissing(prev []v1beta1.ClusterCondition, s State, inv *Inventory) *v1beta1.ClusterCondition {
	was := findCondition(prev, v1beta1.ClusterFencesMissing)
	switch {
	case inv == nil:
		return was
	case !inv.Unfenced:
		return nil
	}
	return keepTransitionTime(was, s, condition(v1beta1.ClusterFencesMissing, corev1.ConditionTrue, v1beta1.ReasonNotRefused,
		"the cluster lets the federation's account write what the federation does not manage: nothing but its rights bounds whoever has its credential. Kubernetes 1.30 and newer have fences: join the cluster again"))
}

// keepTransitionTime gives a condition that was there before its time, and another the time of the check.
func keepTransitionTime(was *v1beta1.ClusterCondition, s State, c v1beta1.ClusterCondition) *v1beta1.ClusterCondition {
	if ready := findCondition(s.Conditions, v1beta1.ClusterReady); ready != nil {
		c.LastProbeTime, c.LastTransitionTime = ready.LastProbeTime, ready.LastProbeTime
	}
	if was != nil {
		c.LastTransitionTime = was.LastTransitionTime
	}
	return &c
}

// sameConditions compares by type: in which order an apply leaves the conditions of several managers, the API decides.
func sameConditions(a, b []v1beta1.ClusterCondition) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(c v1beta1.ClusterCondition) bool {
		other := findCondition(b, c.Type)
		return other == nil || !sameCondition(c, *other)
	})
}

func sameCondition(a, b v1beta1.ClusterCondition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// Topology returns the zones of nodes with the given labels, sorted, and the region that most of
// them name (of equally many the first by name). Labels of old clusters count where the new ones
// are missing; nodes without either are ignored, and so is what can be no label. Of more than maxZones zones the first by name are taken.
func Topology(nodes []map[string]string) (zones []string, region string) {
	byRegion := map[string]int{}
	for _, labels := range nodes {
		if zone := firstLabel(labels, corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone); zone != "" && !slices.Contains(zones, zone) {
			zones = append(zones, zone)
		}
		if r := firstLabel(labels, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaRegion); r != "" {
			byRegion[r]++
		}
	}
	sort.Strings(zones)
	zones = zones[:min(len(zones), maxZones)]
	for r, n := range byRegion {
		if best := byRegion[region]; n > best || n == best && r < region {
			region = r
		}
	}
	return zones, region
}

func firstLabel(labels map[string]string, keys ...string) string {
	for _, key := range keys {
		if v := labels[key]; v != "" && len(validation.IsValidLabelValue(v)) == 0 {
			return v
		}
	}
	return ""
}
