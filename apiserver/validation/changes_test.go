package validation

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// A policy may be changed to whatever it might have been made as; its name and namespace stay.
func TestPoliciesAreCheckedWhenTheyChange(t *testing.T) {
	stored := func(spec string) *v1beta1.PlacementPolicy {
		p := policy(t, spec)
		p.ResourceVersion = "1"
		return p
	}
	old, elsewhere, renamed := stored(goodSelector), stored(goodSelector), stored(goodSelector)
	elsewhere.Namespace, renamed.Name = "bank", "silver"
	for name, c := range map[string]struct {
		policy *v1beta1.PlacementPolicy
		want   string
	}{
		"the same":            {old, ""},
		"a higher priority":   {stored(goodSelector + "\npriority: 5"), ""},
		"nothing is selected": {stored("{}"), "spec.resourceSelectors"},
		"another namespace":   {elsewhere, "metadata.namespace"},
		"another name":        {renamed, "metadata.name"},
	} {
		if got := fields(ValidatePlacementPolicyUpdate(c.policy, old)); got != c.want {
			t.Errorf("%s: faults at %q, want %q", name, got, c.want)
		}
	}
	nameless := policy(t, goodSelector)
	nameless.Namespace = ""
	if got := fields(ValidatePlacementPolicy(nameless)); got != "metadata.namespace" {
		t.Errorf("a policy in no namespace: faults at %q", got)
	}
}

// The status of a policy has conditions as Kubernetes has them; a spec that has become invalid does not keep it from being written.
func TestTheStatusOfAPolicyIsChecked(t *testing.T) {
	accepted := metav1.Condition{Type: v1beta1.PolicyAccepted, Status: metav1.ConditionTrue, Reason: "Accepted", LastTransitionTime: metav1.Unix(1, 0)}
	unsure, undated := accepted, accepted
	unsure.Status, undated.LastTransitionTime = "Perhaps", metav1.Time{}
	for name, c := range map[string]struct {
		conditions []metav1.Condition
		want       string
	}{
		"none":                  {nil, ""},
		"accepted":              {[]metav1.Condition{accepted}, ""},
		"neither true nor not":  {[]metav1.Condition{unsure}, "status.conditions[0].status"},
		"since when is unknown": {[]metav1.Condition{undated}, "status.conditions[0].lastTransitionTime"},
		"twice":                 {[]metav1.Condition{accepted, accepted}, "status.conditions[1].type"},
	} {
		old := policy(t, "{}")
		old.ResourceVersion = "1"
		object := old.DeepCopy()
		object.Status.Conditions = c.conditions
		if got := fields(ValidatePlacementPolicyStatusUpdate(object, old)); got != c.want {
			t.Errorf("%s: faults at %q, want %q", name, got, c.want)
		}
	}
}

// A Cluster whose status was stored with faults can be written as long as these stay as they are, and no longer.
func TestTheStatusOfAClusterIsCheckedWhenItChanges(t *testing.T) {
	old := cluster("east", "::/0", "a")
	old.Status.Conditions = []v1beta1.ClusterCondition{{Type: v1beta1.ClusterReady, Status: "Perhaps"}}
	same, changed, renamed := old.DeepCopy(), old.DeepCopy(), old.DeepCopy()
	same.Labels = map[string]string{"tier": "gold"}
	changed.Status.Region = "east"
	renamed.Name = "west"
	for name, c := range map[string]struct {
		cluster *v1beta1.Cluster
		want    string
	}{
		"labels change":            {same, ""},
		"the status changes":       {changed, "status.conditions[0].status"},
		"it is another cluster":    {renamed, "metadata.name"},
		"nothing is wrong with it": {cluster("east", "::/0", "a"), ""},
	} {
		if got := fields(ValidateClusterStatusUpdate(c.cluster, old)); got != c.want {
			t.Errorf("%s: faults at %q, want %q", name, got, c.want)
		}
	}
	for _, phase := range []v1beta1.FailoverPhase{"Serving", "GracePeriod", "FailoverSuspended", "FailedOver", "FailingBack"} {
		object := cluster("east", "::/0", "a")
		object.Status.Failover = &v1beta1.ClusterFailover{Phase: phase, Percent: 100}
		if errs := ValidateClusterStatusUpdate(object, old); len(errs) > 0 {
			t.Errorf("phase %s: %v", phase, errs)
		}
	}
	for _, phase := range []v1beta1.DrainPhase{"Publishing", "Expiring", "Evicting", "Drained", "Returning", "Blocked"} {
		object := cluster("east", "::/0", "a")
		object.Status.Drain = &v1beta1.ClusterDrainStatus{Phase: phase}
		if errs := ValidateClusterStatusUpdate(object, old); len(errs) > 0 {
			t.Errorf("drain %s: %v", phase, errs)
		}
	}
}

// A toleration of a cluster's taint has no time: the taint is tolerated for ever, or not at all. Without a key all are, and it says that it means it.
func TestTolerationsOfPolicies(t *testing.T) {
	long := strings.Repeat("x", 64)
	for name, c := range map[string]struct {
		toleration corev1.Toleration
		want       string
	}{
		"of a value":                  {corev1.Toleration{Key: "a.example.com/b", Value: "c"}, ""},
		"of no value":                 {corev1.Toleration{Key: "a", Operator: "Equal"}, ""},
		"of any value":                {corev1.Toleration{Key: "a", Operator: "Exists", Effect: "NoExecute"}, ""},
		"of all taints":               {corev1.Toleration{Operator: "Exists"}, ""},
		"of all of an effect":         {corev1.Toleration{Operator: "Exists", Effect: "NoSchedule"}, ""},
		"of all with a value":         {corev1.Toleration{Operator: "Exists", Value: "a"}, "spec.tolerations[0].value"},
		"of what has no key":          {corev1.Toleration{Operator: "Equal", Value: "a"}, "spec.tolerations[0].operator"},
		"a key that is none":          {corev1.Toleration{Key: "a/b/c", Operator: "Exists"}, "spec.tolerations[0].key"},
		"a value that is none":        {corev1.Toleration{Key: "a", Value: long}, "spec.tolerations[0].value"},
		"an effect on new pods alone": {corev1.Toleration{Key: "a", Effect: "PreferNoSchedule"}, "spec.tolerations[0].effect"},
		"for a while":                 {corev1.Toleration{Key: "a", TolerationSeconds: new(int64(0))}, "spec.tolerations[0].tolerationSeconds"},
		"nothing is right": {corev1.Toleration{Key: long, Operator: "Lt", Effect: "x", TolerationSeconds: new(int64(1))},
			"spec.tolerations[0].key spec.tolerations[0].operator spec.tolerations[0].effect spec.tolerations[0].tolerationSeconds"},
	} {
		p := policy(t, goodSelector)
		p.Spec.Tolerations = []corev1.Toleration{c.toleration}
		if got := fields(ValidatePlacementPolicy(p)); got != c.want {
			t.Errorf("%s: faults at %q, want %q", name, got, c.want)
		}
	}
}

// With workloadAffinity Required all is in the same clusters: they cannot be in more groups than there may be clusters, whatever these are
// grouped by. Without it each object has clusters of its own.
func TestWorkloadAffinityAndSpread(t *testing.T) {
	for _, c := range []struct{ constraints, want string }{
		{"{spreadBy: Cluster, maxGroups: 2}, {spreadBy: Zone, minGroups: 2}", ""},
		{"{spreadBy: Cluster, maxGroups: 2}, {spreadBy: Zone, minGroups: 3}", "spec.spreadConstraints[1].minGroups"},
		{"{spreadBy: Region, minGroups: 3}, {spreadBy: Cluster, maxGroups: 2}, {spreadBy: Zone, minGroups: 4}",
			"spec.spreadConstraints[0].minGroups spec.spreadConstraints[2].minGroups"},
		{"{spreadBy: Cluster, minGroups: 2}, {spreadBy: Zone, minGroups: 3}", ""}, // as many clusters as it takes
		{"{spreadBy: Zone, maxGroups: 2}, {spreadBy: Region, minGroups: 3}", ""},  // the clusters are not bounded
		{"{spreadBy: Zone, maxGroups: 3, minGroups: 3}, {spreadBy: Cluster, minGroups: 3, maxGroups: 3}", ""},
	} {
		for affinity, want := range map[string]string{"Required": c.want, "Preferred": "", "None": ""} {
			if got := fields(ValidatePlacementPolicy(policy(t, goodSelector+"\nworkloadAffinity: "+affinity+"\nspreadConstraints: ["+c.constraints+"]"))); got != want {
				t.Errorf("%s %s: faults at %q, want %q", affinity, c.constraints, got, want)
			}
		}
	}
}
