package scheduler

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"federation/apiserver/apis/federation/v1beta1"
)

// wants is what an object asks for: by its annotations or, without these, by its policy.
type wants struct {
	policy      *policy // nil if none governs it
	preferences *v1beta1.ReplicaPreferences
	preferredBy string // the source of the preferences, for the reasons
	selector    labels.Selector
	spread      []v1beta1.SpreadConstraint
	tolerations []corev1.Toleration
	failover    v1beta1.FailoverPolicy
	stay        string // why replicas in a lost cluster stay there, if failover is disabled
	inputs      string
	notes       []string
}

func wantsOf(o *Object, w *World) wants {
	out := wants{policy: w.policyOf(o), preferences: o.Preferences, selector: o.Selector, preferredBy: "the annotation"}
	var spec v1beta1.PlacementPolicySpec
	hash := ""
	if out.policy != nil {
		spec, hash = out.policy.Spec, out.policy.hash
	}
	out.spread, out.tolerations = spec.SpreadConstraints, spec.Tolerations
	switch {
	case spec.Failover != nil:
		out.failover, out.stay = *spec.Failover, "the policy disables failover"
	case o.Volumes:
		out.failover.Disabled, out.stay = true, "the volumes are there, and no policy with spec.failover governs it"
	}
	switch {
	case out.preferences == nil:
		out.preferences, out.preferredBy = spec.ReplicaPreferences, "the policy"
	case spec.ReplicaPreferences != nil:
		out.notes = append(out.notes, "the preferences annotation counts, not those of policy "+out.policy.Name)
	}
	if out.preferences == nil {
		out.preferences = v1beta1.DefaultReplicaPreferences()
	}
	if out.selector != nil && spec.Clusters != nil {
		out.notes = append(out.notes, "the cluster selector annotation counts, not the clusters of policy "+out.policy.Name)
	}
	if o.Whole {
		out.keepWhole()
	}
	out.inputs = strings.TrimRight(textHash(o.preferencesText)+"/"+textHash(o.selectorText)+"/"+hash, "/")
	return out
}

// keepWhole requests one cluster, whatever else is requested. What runs there does not fail back: it would start over.
func (a *wants) keepWhole() {
	one, spread := int32(1), []v1beta1.SpreadConstraint{{SpreadBy: v1beta1.SpreadByCluster}}
	for _, c := range a.spread {
		if c.MinGroups > 1 {
			a.notes = append(a.notes, "an Indexed Job goes whole to one cluster: minGroups of the spread constraints is ignored")
		}
		if c.SpreadBy != v1beta1.SpreadByCluster {
			spread = append(spread, v1beta1.SpreadConstraint{SpreadBy: c.SpreadBy, MaxGroups: c.MaxGroups})
		}
	}
	spread[0].MaxGroups = &one
	prefs := &v1beta1.ReplicaPreferences{Clusters: map[string]v1beta1.ClusterPreferences{}}
	for name, c := range a.preferences.Clusters { // they say which cluster, and how many pods at once
		prefs.Clusters[name] = v1beta1.ClusterPreferences{Weight: c.Weight + c.MinReplicas, MaxReplicas: c.MaxReplicas}
	}
	a.preferences, a.spread, a.failover.Failback = prefs, spread, v1beta1.FailbackNever
}

func textHash(text string) string {
	if text == "" {
		return ""
	}
	return hashOf(text)
}

// refuses returns why a cluster is not for objects of a namespace, or not selected for this one; "" if it is.
func (a *wants) refuses(namespace string, c *v1beta1.Cluster, w *World) string {
	if why := c.RefusesNamespace(namespace); why != "" {
		return why
	}
	if a.selector != nil {
		if a.selector.Matches(labels.Set(c.Labels)) {
			return ""
		}
		return "not selected by the cluster selector annotation"
	}
	if a.policy == nil {
		return ""
	}
	return a.policy.refuses(c.Name, w.Clusters)
}

// selected returns why a cluster is selected, for the reasons.
func (a *wants) selected(c *v1beta1.Cluster) (why []string) {
	switch {
	case a.selector != nil:
		why = append(why, "selected by the cluster selector annotation")
	case a.policy != nil && a.policy.Spec.Clusters != nil && len(a.policy.Spec.Clusters.Names) > 0:
		why = append(why, "named by the policy "+a.policy.Name)
	case a.policy != nil && a.policy.Spec.Clusters != nil:
		why = append(why, "selected by the policy "+a.policy.Name)
	}
	if _, named := a.preferences.Clusters[c.Name]; named {
		why = append(why, fmt.Sprintf("named in the preferences of %s", a.preferredBy))
	}
	return why
}

// neverFailsBack reports whether moved replicas stay where they are.
func (a *wants) neverFailsBack() bool { return a.failover.Failback == v1beta1.FailbackNever }

func (a *wants) policyName() string {
	if a.policy == nil {
		return ""
	}
	return a.policy.Name
}
