package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
)

// Bounds of the size of a Cluster's status.
const (
	maxNodeClasses   = 16
	maxUnschedulable = 256
	maxDrainWaiting  = 5
)

func validateCapacity(c *v1beta1.ClusterCapacity, path *field.Path) (errs field.ErrorList) {
	if c == nil {
		return nil
	}
	if c.Nodes < 0 {
		errs = append(errs, field.Invalid(path.Child("nodes"), c.Nodes, "must be 0 or more"))
	}
	if n := len(c.Free); n > maxNodeClasses {
		errs = append(errs, field.TooMany(path.Child("free"), n, maxNodeClasses))
	}
	if n := len(c.Unschedulable); n > maxUnschedulable {
		errs = append(errs, field.TooMany(path.Child("unschedulable"), n, maxUnschedulable))
	}
	return errs
}

var failoverPhases = []v1beta1.FailoverPhase{
	v1beta1.PhaseServing, v1beta1.PhaseGracePeriod, v1beta1.PhaseFailoverSuspended, v1beta1.PhaseFailedOver, v1beta1.PhaseFailingBack,
}

func validateFailoverState(f *v1beta1.ClusterFailover, path *field.Path) field.ErrorList {
	if f == nil {
		return nil
	}
	errs := oneOf(f.Phase, failoverPhases, path.Child("phase"))
	return append(errs, inRange(int64(f.Percent), 0, 100, path.Child("percent"))...)
}

var drainPhases = []v1beta1.DrainPhase{
	v1beta1.DrainPublishing, v1beta1.DrainExpiring, v1beta1.DrainEvicting, v1beta1.DrainDrained, v1beta1.DrainReturning, v1beta1.DrainBlocked,
}

func validateDrainStatus(d *v1beta1.ClusterDrainStatus, path *field.Path) field.ErrorList {
	if d == nil {
		return nil
	}
	errs := oneOf(d.Phase, drainPhases, path.Child("phase"))
	if n := len(d.Waiting); n > maxDrainWaiting {
		errs = append(errs, field.TooMany(path.Child("waiting"), n, maxDrainWaiting))
	}
	return errs
}
