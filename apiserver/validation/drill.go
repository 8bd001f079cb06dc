package validation

import (
	"fmt"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
)

const (
	maxDrillScope = 1000
	// maxDrillReason is the maximum size in bytes of people's texts about a drill.
	maxDrillReason = 1024
)

// drillMethods are the existing methods.
var drillMethods = []v1beta1.DrillMethod{v1beta1.DrillBlackhole, v1beta1.DrillEvacuate, v1beta1.DrillIsolation, v1beta1.DrillShift}

// ValidateFailoverDrill checks a new drill.
func ValidateFailoverDrill(d *v1beta1.FailoverDrill) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&d.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, validateDrillSpec(&d.Spec, field.NewPath("spec"))...)
}

func validateDrillSpec(s *v1beta1.FailoverDrillSpec, path *field.Path) (errs field.ErrorList) {
	errs = append(errs, validateScope(&s.Scope, path.Child("scope"))...)
	if !slices.Contains(drillMethods, s.Method) {
		errs = append(errs, field.NotSupported(path.Child("method"), s.Method, drillMethods))
	}
	errs = append(errs, drillText(s.Reason, path.Child("reason"))...)
	if strings.TrimSpace(s.Reason) == "" {
		errs = append(errs, field.Required(path.Child("reason"), "say why, for those who see it"))
	}
	errs = append(errs, between(s.BaselineSeconds, 5, 3600, path.Child("baselineSeconds"))...)
	errs = append(errs, between(s.HoldSeconds, 10, 14400, path.Child("holdSeconds"))...)
	errs = append(errs, between(s.RecoverySeconds, 60, 14400, path.Child("recoverySeconds"))...)
	errs = append(errs, between(s.StartingDeadlineSeconds, 0, 86400, path.Child("startingDeadlineSeconds"))...)
	objectives := path.Child("objectives")
	errs = append(errs, between(s.Objectives.OutOfDNSSeconds, 1, 14400, objectives.Child("outOfDNSSeconds"))...)
	errs = append(errs, between(s.Objectives.ReadyElsewhereSeconds, 1, 14400, objectives.Child("readyElsewhereSeconds"))...)
	errs = append(errs, between(s.Objectives.MinReadyPercent, 0, 100, objectives.Child("minReadyPercent"))...)
	if s.Method == v1beta1.DrillShift && s.Objectives.ReadyElsewhereSeconds != nil {
		errs = append(errs, field.Invalid(objectives.Child("readyElsewhereSeconds"), *s.Objectives.ReadyElsewhereSeconds, "must be left out: with method Shift no replica moves"))
	}
	errs = append(errs, between(s.Objectives.DetectedSeconds, 1, 14400, objectives.Child("detectedSeconds"))...)
	errs = append(errs, validateIsolate(s, path)...)
	if approvals := []v1beta1.DrillApproval{v1beta1.DrillApprovalNotRequired, v1beta1.DrillApprovalRequired}; s.Approval != "" && !slices.Contains(approvals, s.Approval) {
		errs = append(errs, field.NotSupported(path.Child("approval"), s.Approval, approvals))
	}
	errs = append(errs, validateProbes(s, path.Child("probes"))...)
	errs = append(errs, between(s.Objectives.MaxFailedPerMille, 0, 1000, objectives.Child("maxFailedPerMille"))...)
	if s.Objectives.MaxFailedPerMille != nil && len(s.Probes) == 0 {
		errs = append(errs, field.Invalid(objectives.Child("maxFailedPerMille"), *s.Objectives.MaxFailedPerMille, "must be left out: there are no probes"))
	}
	errs = append(errs, between(s.Guardrails.MaxFailedPerMille, 0, 1000, path.Child("guardrails", "maxFailedPerMille"))...)
	errs = append(errs, between(s.Guardrails.WindowSeconds, 5, 600, path.Child("guardrails", "windowSeconds"))...)
	if s.Windows != nil {
		errs = append(errs, validateWindows(s.Windows, path.Child("windows"))...)
	}
	guardrails := path.Child("guardrails")
	errs = append(errs, between(s.Guardrails.MinReadyPercent, 0, 100, guardrails.Child("minReadyPercent"))...)
	if n := s.Guardrails.MaxUnplaced; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(guardrails.Child("maxUnplaced"), *n, "must not be negative"))
	}
	return errs
}

// allowable are the checks that a drill may ignore.
var allowable = []string{v1beta1.DrillDoubleRunning, v1beta1.DrillNotHeld, v1beta1.DrillQuiet, v1beta1.DrillRested}

// validateIsolate checks the fields for the methods Isolate and Blackhole.
func validateIsolate(s *v1beta1.FailoverDrillSpec, path *field.Path) (errs field.ErrorList) {
	for i, check := range s.Allow {
		if !slices.Contains(allowable, check) {
			errs = append(errs, field.NotSupported(path.Child("allow").Index(i), check, allowable))
		}
	}
	if modes := []v1beta1.IsolationMode{v1beta1.IsolateRefused, v1beta1.IsolateSilent}; s.Isolate != nil && s.Isolate.As != "" && !slices.Contains(modes, s.Isolate.As) {
		errs = append(errs, field.NotSupported(path.Child("isolate", "as"), s.Isolate.As, modes))
	}
	if s.Method.Isolates() {
		return errs
	}
	only := "must be left out: it is for methods Isolate and Blackhole, not " + string(s.Method)
	if s.Isolate != nil {
		errs = append(errs, field.Forbidden(path.Child("isolate"), only))
	}
	if s.Objectives.DetectedSeconds != nil {
		errs = append(errs, field.Invalid(path.Child("objectives", "detectedSeconds"), *s.Objectives.DetectedSeconds, only))
	}
	return errs
}

// validateScope checks which clusters a drill takes.
func validateScope(s *v1beta1.FailoverDrillScope, path *field.Path) field.ErrorList {
	if len(s.Clusters)+len(s.Zones)+len(s.Regions) == 0 {
		return field.ErrorList{field.Required(path, "name at least one of clusters, zones or regions")}
	}
	if n := len(s.Clusters) + len(s.Zones) + len(s.Regions); n > maxDrillScope {
		return field.ErrorList{field.TooMany(path, n, maxDrillScope)}
	}
	errs := eachOnce(s.Clusters, path.Child("clusters"), clusterName)
	errs = append(errs, eachOnce(s.Zones, path.Child("zones"), zoneOfRegion)...)
	return append(errs, eachOnce(s.Regions, path.Child("regions"), topologyName)...)
}

func drillText(text string, path *field.Path) field.ErrorList {
	if len(text) > maxDrillReason {
		return field.ErrorList{field.TooLong(path, "", maxDrillReason)}
	}
	return nil
}

func between(n *int32, least, most int32, path *field.Path) field.ErrorList {
	if n != nil && (*n < least || *n > most) {
		return field.ErrorList{field.Invalid(path, *n, fmt.Sprintf("must be from %d to %d", least, most))}
	}
	return nil
}

// ValidateFailoverDrillUpdate checks an update of a drill: its spec is immutable.
func ValidateFailoverDrillUpdate(d, old *v1beta1.FailoverDrill) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&d.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	if !apiequality.Semantic.DeepEqual(d.Spec, old.Spec) {
		errs = append(errs, field.Forbidden(field.NewPath("spec"), "a drill cannot be changed: abort or delete it, and make another one"))
	}
	return errs
}

// ValidateDrillDecision checks the reason for ending or approving a drill.
func ValidateDrillDecision(d *v1beta1.DrillDecision, path *field.Path) field.ErrorList {
	if d == nil {
		return nil
	}
	return drillText(d.Reason, path.Child("reason"))
}
