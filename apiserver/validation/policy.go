package validation

import (
	"fmt"
	"maps"
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
)

// Bounds of the size of a policy.
const (
	maxSelectors    = 100
	maxOverrides    = 100
	maxOperations   = 200 // of all overrides together
	maxGraceSeconds = 24 * 60 * 60
)

// ValidatePlacementPolicy checks a new policy.
func ValidatePlacementPolicy(p *v1beta1.PlacementPolicy) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&p.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, validatePolicySpec(&p.Spec, field.NewPath("spec"))...)
}

// ValidatePlacementPolicyUpdate checks a change of a policy.
func ValidatePlacementPolicyUpdate(p, old *v1beta1.PlacementPolicy) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&p.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, validatePolicySpec(&p.Spec, field.NewPath("spec"))...)
}

// ValidatePlacementPolicyStatusUpdate checks a change of a policy's status.
func ValidatePlacementPolicyStatusUpdate(p, old *v1beta1.PlacementPolicy) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&p.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, metav1validation.ValidateConditions(p.Status.Conditions, field.NewPath("status", "conditions"))...)
}

// WarnOfPlacementPolicy warns of what is allowed but probably not meant.
func WarnOfPlacementPolicy(p *v1beta1.PlacementPolicy) (warnings []string) {
	if r := p.Spec.Rollout; r != nil && len(r.Order) > 0 && r.Strategy != v1beta1.RolloutOneClusterAtATime {
		warnings = append(warnings, "spec.rollout.order: counts with strategy OneClusterAtATime only")
	}
	if f := p.Spec.Failover; f != nil && f.Disabled && (f.Failback != "" || f.GracePeriodSeconds != nil) {
		warnings = append(warnings, "spec.failover: with disabled: true the rest of it counts for nothing")
	}
	if p.Spec.ScalesAtFederation() && !slices.ContainsFunc(p.Spec.ResourceSelectors, func(r v1beta1.ResourceSelector) bool { return r.Kind == "HorizontalPodAutoscaler" }) {
		warnings = append(warnings, "spec.autoscaling: resourceSelectors name no HorizontalPodAutoscaler: it counts for nothing")
	}
	return warnings
}

func validatePolicySpec(s *v1beta1.PlacementPolicySpec, path *field.Path) field.ErrorList {
	errs := validateSelectors(s.ResourceSelectors, path.Child("resourceSelectors"))
	errs = append(errs, validateAffinity(s.Clusters, path.Child("clusters"))...)
	errs = append(errs, validateSpread(s.SpreadConstraints, path.Child("spreadConstraints"))...)
	errs = append(errs, validateWorkloadAffinity(s, path)...)
	errs = append(errs, validatePreferences(s.ReplicaPreferences, path.Child("replicaPreferences"))...)
	errs = append(errs, validateAutoscaling(s.Autoscaling, path.Child("autoscaling"))...)
	if s.DNS != nil {
		errs = append(errs, s.DNS.Validate(path.Child("dns"))...)
		errs = append(errs, clusterNames(s.DNS.Clusters, path.Child("dns", "clusters"))...)
	}
	errs = append(errs, validateTolerations(s.Tolerations, path.Child("tolerations"))...)
	errs = append(errs, validateFailover(s.Failover, path.Child("failover"))...)
	errs = append(errs, validateRollout(s.Rollout, path.Child("rollout"))...)
	errs = append(errs, validateOverrides(s.Overrides, path.Child("overrides"))...)
	return append(errs, fixedStays(s, path.Child("overrides"))...)
}

func validatePreferences(p *v1beta1.ReplicaPreferences, path *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	errs := append(p.Validate(path), clusterNames(p.Clusters, path.Child("clusters"))...)
	if len(p.Clusters) == 0 {
		errs = append(errs, field.Required(path.Child("clusters"), nobodyNamed))
	}
	return errs
}

const nobodyNamed = `name clusters, or "*" for all: a cluster that is not named gets nothing`

// clusterNames rejects keys that are no valid cluster names; "*" stands for all that are not named.
func clusterNames[V any](clusters map[string]V, path *field.Path) (errs field.ErrorList) {
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		if name != v1beta1.AnyCluster {
			errs = append(errs, clusterName(name, path.Key(name))...)
		}
	}
	return errs
}

func validateAffinity(a *v1beta1.ClusterAffinity, path *field.Path) field.ErrorList {
	if a == nil {
		return nil
	}
	errs := eachOnce(a.Names, path.Child("names"), clusterName)
	errs = append(errs, validateLabelSelector(a.LabelSelector, path.Child("labelSelector"))...)
	errs = append(errs, eachOnce(a.Zones, path.Child("zones"), topologyName)...)
	return append(errs, eachOnce(a.Regions, path.Child("regions"), topologyName)...)
}

func validateLabelSelector(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, path)
}

var spreads = []v1beta1.SpreadBy{v1beta1.SpreadByCluster, v1beta1.SpreadByRegion, v1beta1.SpreadByZone}

func validateSpread(constraints []v1beta1.SpreadConstraint, path *field.Path) (errs field.ErrorList) {
	seen := map[v1beta1.SpreadBy]bool{}
	for i, c := range constraints {
		at := path.Index(i)
		errs = append(errs, oneOf(c.SpreadBy, spreads, at.Child("spreadBy"))...)
		if seen[c.SpreadBy] {
			errs = append(errs, field.Duplicate(at.Child("spreadBy"), c.SpreadBy))
		}
		seen[c.SpreadBy] = true
		errs = append(errs, validateGroups(c, at)...)
	}
	return errs
}

var workloadAffinities = []v1beta1.WorkloadAffinity{v1beta1.WorkloadAffinityNone, v1beta1.WorkloadAffinityPreferred, v1beta1.WorkloadAffinityRequired}

// validateWorkloadAffinity checks it, and that as many clusters as are allowed can be in as many groups as are asked for: what is
// together is in no others.
func validateWorkloadAffinity(s *v1beta1.PlacementPolicySpec, path *field.Path) (errs field.ErrorList) {
	if s.WorkloadAffinity == "" {
		return nil
	}
	if errs = oneOf(s.WorkloadAffinity, workloadAffinities, path.Child("workloadAffinity")); s.WorkloadAffinity != v1beta1.WorkloadAffinityRequired {
		return errs
	}
	for _, most := range s.SpreadConstraints {
		for i, c := range s.SpreadConstraints {
			if most.SpreadBy == v1beta1.SpreadByCluster && most.MaxGroups != nil && c.MinGroups > *most.MaxGroups {
				errs = append(errs, field.Invalid(path.Child("spreadConstraints").Index(i).Child("minGroups"), c.MinGroups,
					fmt.Sprintf("must be no more than the %d clusters that maxGroups allows: with workloadAffinity Required all is in these", *most.MaxGroups)))
			}
		}
	}
	return errs
}

var autoscalingScopes = []v1beta1.AutoscalingScope{v1beta1.AutoscalingScopeCluster, v1beta1.AutoscalingScopeFederation}

func validateAutoscaling(a *v1beta1.AutoscalingPolicy, path *field.Path) field.ErrorList {
	if a == nil || a.Scope == "" {
		return nil
	}
	return oneOf(a.Scope, autoscalingScopes, path.Child("scope"))
}

func validateGroups(c v1beta1.SpreadConstraint, at *field.Path) (errs field.ErrorList) {
	if c.MinGroups < 0 {
		errs = append(errs, field.Invalid(at.Child("minGroups"), c.MinGroups, "must be 0 or more"))
	}
	switch most := c.MaxGroups; {
	case most == nil && c.MinGroups == 0:
		errs = append(errs, field.Required(at, "say minGroups, maxGroups or both"))
	case most == nil:
	case *most < 1:
		errs = append(errs, field.Invalid(at.Child("maxGroups"), *most, "must be 1 or more"))
	case *most < c.MinGroups:
		errs = append(errs, field.Invalid(at.Child("maxGroups"), *most, "must be no less than minGroups"))
	}
	return errs
}

var failbacks = []v1beta1.Failback{v1beta1.FailbackImmediate, v1beta1.FailbackNever, v1beta1.FailbackStaged}

func validateFailover(f *v1beta1.FailoverPolicy, path *field.Path) (errs field.ErrorList) {
	if f == nil {
		return nil
	}
	if s := f.GracePeriodSeconds; s != nil {
		errs = append(errs, inRange(int64(*s), 0, maxGraceSeconds, path.Child("gracePeriodSeconds"))...)
	}
	if f.Failback != "" {
		errs = append(errs, oneOf(f.Failback, failbacks, path.Child("failback"))...)
	}
	return errs
}

var rollouts = []v1beta1.RolloutStrategy{v1beta1.RolloutAllAtOnce, v1beta1.RolloutOneClusterAtATime}

func validateRollout(r *v1beta1.RolloutPolicy, path *field.Path) (errs field.ErrorList) {
	if r == nil {
		return nil
	}
	if r.Strategy != "" {
		errs = oneOf(r.Strategy, rollouts, path.Child("strategy"))
	}
	return append(errs, eachOnce(r.Order, path.Child("order"), clusterName)...)
}
