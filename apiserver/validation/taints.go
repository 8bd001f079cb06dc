package validation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const maxDNSWeight = 1000

var taintEffects = []corev1.TaintEffect{corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule}

func validateTaints(taints []corev1.Taint, path *field.Path) (errs field.ErrorList) {
	seen := map[corev1.Taint]bool{}
	for i, t := range taints {
		at := path.Index(i)
		if t.Key == "" {
			errs = append(errs, field.Required(at.Child("key"), "name what the taint is about, such as maintenance"))
		} else {
			errs = append(errs, metav1validation.ValidateLabelName(t.Key, at.Child("key"))...)
		}
		errs = append(errs, labelValue(t.Value, at.Child("value"))...)
		errs = append(errs, oneOf(t.Effect, taintEffects, at.Child("effect"))...)
		unique := corev1.Taint{Key: t.Key, Effect: t.Effect}
		if seen[unique] {
			errs = append(errs, field.Duplicate(at, unique.ToString()))
		}
		seen[unique] = true
	}
	return errs
}

var tolerationOperators = []corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}

func validateTolerations(tolerations []corev1.Toleration, path *field.Path) (errs field.ErrorList) {
	for i, t := range tolerations {
		at := path.Index(i)
		if t.Key != "" {
			errs = append(errs, metav1validation.ValidateLabelName(t.Key, at.Child("key"))...)
		} else if t.Operator != corev1.TolerationOpExists {
			errs = append(errs, field.Invalid(at.Child("operator"), t.Operator, "must be Exists where there is no key: all taints are tolerated"))
		}
		switch t.Operator {
		case corev1.TolerationOpExists:
			if t.Value != "" {
				errs = append(errs, field.Invalid(at.Child("value"), t.Value, "must be empty with operator Exists"))
			}
		case corev1.TolerationOpEqual, "":
			errs = append(errs, labelValue(t.Value, at.Child("value"))...)
		default:
			errs = append(errs, field.NotSupported(at.Child("operator"), t.Operator, tolerationOperators))
		}
		if t.Effect != "" {
			errs = append(errs, oneOf(t.Effect, taintEffects, at.Child("effect"))...)
		}
		if s := t.TolerationSeconds; s != nil {
			errs = append(errs, field.Invalid(at.Child("tolerationSeconds"), *s, "must be left out: a taint of a cluster is tolerated for ever, or not at all"))
		}
	}
	return errs
}

func labelValue(value string, path *field.Path) (errs field.ErrorList) {
	for _, msg := range validation.IsValidLabelValue(value) {
		errs = append(errs, field.Invalid(path, value, msg))
	}
	return errs
}

func inRange(value, least, most int64, path *field.Path) field.ErrorList {
	if value >= least && value <= most {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("must be from %d to %d", least, most))}
}

// oneOf rejects values that are not allowed.
func oneOf[T ~string](value T, allowed []T, path *field.Path) field.ErrorList {
	for _, a := range allowed {
		if a == value {
			return nil
		}
	}
	if value == "" {
		return field.ErrorList{field.Required(path, fmt.Sprintf("supported values: %q", allowed))}
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}
