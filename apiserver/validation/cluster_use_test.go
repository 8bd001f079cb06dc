package validation

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

func TestTaintsAndWeight(t *testing.T) {
	for name, c := range map[string]struct {
		taints []corev1.Taint
		weight int32
		want   string
	}{
		"good": {[]corev1.Taint{{Key: v1beta1.TaintDrain, Effect: "NoExecute"}, {Key: v1beta1.TaintDrain, Effect: "NoSchedule", Value: "a"}}, 1000, ""},
		"all wrong": {[]corev1.Taint{{Effect: "NoSchedule"}, {Key: "a b", Effect: "NoSchedule", Value: "a b"}, {Key: "a"}, {Key: "a", Effect: "PreferNoSchedule"}}, 1001,
			"spec.taints[0].key spec.taints[1].key spec.taints[1].value spec.taints[2].effect spec.taints[3].effect spec.dnsWeight"},
		"twice": {[]corev1.Taint{{Key: "a", Effect: "NoSchedule", Value: "b"}, {Key: "a", Effect: "NoSchedule"}}, -1, "spec.taints[1] spec.dnsWeight"},
	} {
		object := cluster("east", "::/0", "a")
		object.Spec.Taints, object.Spec.DNSWeight = c.taints, &c.weight
		if got := fields(ValidateCluster(object)); got != c.want {
			t.Errorf("%s: faults at %q, want %q", name, got, c.want)
		}
	}
}

func TestTheWaitOfADrain(t *testing.T) {
	for seconds, want := range map[int32]string{0: "", 604800: "", -1: "spec.drain.ttlSeconds", 604801: "spec.drain.ttlSeconds"} {
		object := cluster("east", "::/0", "a")
		object.Spec.Drain = &v1beta1.ClusterDrain{TTLSeconds: &seconds}
		if got := fields(ValidateCluster(object)); got != want {
			t.Errorf("%d: faults at %q, want %q", seconds, got, want)
		}
	}
}

func TestTheStatusOfAClusterIsBounded(t *testing.T) {
	old := cluster("east", "::/0", "a")
	object := cluster("east", "::/0", "a")
	object.Status.Drain = &v1beta1.ClusterDrainStatus{Phase: "Gone", Waiting: make([]v1beta1.DrainObject, 6)}
	object.Status.Capacity = &v1beta1.ClusterCapacity{Nodes: -1, Free: make([]v1beta1.NodeClass, 17), Unschedulable: make([]v1beta1.UnschedulablePods, 257)}
	object.Status.Failover = &v1beta1.ClusterFailover{Phase: "Gone", Percent: 101}
	want := "status.capacity.nodes status.capacity.free status.capacity.unschedulable status.drain.phase status.drain.waiting status.failover.phase status.failover.percent"
	if got := fields(ValidateClusterStatusUpdate(object, old)); got != want {
		t.Errorf("faults at %q, want %q", got, want)
	}
	object.Status.Capacity = &v1beta1.ClusterCapacity{Free: make([]v1beta1.NodeClass, 16), Unschedulable: make([]v1beta1.UnschedulablePods, 256)}
	object.Status.Failover = &v1beta1.ClusterFailover{Phase: v1beta1.PhaseFailingBack, Percent: 10}
	object.Status.Drain = &v1beta1.ClusterDrainStatus{Phase: v1beta1.DrainEvicting, Waiting: make([]v1beta1.DrainObject, 5)}
	if got := fields(ValidateClusterStatusUpdate(object, old)); got != "" {
		t.Errorf("faults of a good one at %q", got)
	}
}

func TestReviews(t *testing.T) {
	for want, spec := range map[string]v1beta1.FailoverReviewSpec{
		"":                 {Clusters: []string{"east-a"}, Zones: []string{"a", "east/a"}, Regions: []string{"east"}},
		"spec":             {},
		"spec.clusters[0]": {Clusters: []string{"East"}},
		"spec.clusters[1]": {Clusters: []string{"a", "a"}},
		"spec.zones[0] spec.zones[1] spec.regions[0]": {Zones: []string{"a/b/c", ""}, Regions: []string{"east/a"}},
	} {
		if got := fields(ValidateFailoverReview(&v1beta1.FailoverReview{Spec: spec})); got != want {
			t.Errorf("%+v: faults at %q, want %q", spec, got, want)
		}
	}
}

// What an operator pins of a cluster must be possible for nodes and load balancers.
func TestWhatIsPinnedOfACluster(t *testing.T) {
	c := cluster("east", "::/0", "a")
	c.Spec.Topology = &v1beta1.ClusterTopology{Region: "east", Zones: []string{"east-1a", "east-1b"}}
	c.Spec.LoadBalancerCIDRs = []string{"192.0.2.0/24", "2001:db8::/32", "198.51.100.7/32"}
	c.Spec.AllowedNamespaces = []string{"shop", "bank"}
	c.Spec.PodCIDRs = []string{"10.128.0.0/14"}
	if errs := ValidateCluster(c); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
	c.Spec.Topology = &v1beta1.ClusterTopology{Region: "a/b", Zones: append([]string{"", "x", "x"}, make([]string, 14)...)}
	c.Spec.LoadBalancerCIDRs = []string{"192.0.2.7/24", "192.0.2.7", "192.0.2.0/24", "192.0.2.0/24"}
	c.Spec.AllowedNamespaces = []string{"shop", "*", "shop"}
	c.Spec.PodCIDRs = []string{"10.128.0.1/14"}
	got := ValidateCluster(c).ToAggregate().Error()
	for _, want := range []string{
		`spec.allowedNamespaces[1]: Invalid value: "*"`, `spec.allowedNamespaces[2]: Duplicate value: "shop"`,
		`spec.topology.region: Invalid value: "a/b"`, "spec.topology.zones: Too many: 17: must have at most 16 items", "spec.topology.zones[0]: Required value", `spec.topology.zones[2]: Duplicate value: "x"`,
		`spec.loadBalancerCIDRs[0]: Invalid value: "192.0.2.7/24": must be a network in CIDR notation, without bits of a host`, `spec.loadBalancerCIDRs[1]: Invalid value: "192.0.2.7"`, `spec.loadBalancerCIDRs[3]: Duplicate value: "192.0.2.0/24"`,
		`spec.podCIDRs[0]: Invalid value: "10.128.0.1/14"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nwithout %s", got, want)
		}
	}
}
