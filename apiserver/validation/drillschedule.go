package validation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/drilltimes"
	"federation/apiserver/apis/federation/v1beta1"
)

const (
	// maxScheduleName is the maximum length of a schedule's name in bytes: its drills' names have 11 more, and must fit
	// into a label's value.
	maxScheduleName = 52
	maxWindows      = 100
	maxBlockedDates = 400
	maxHistory      = 100
)

var rotations = []v1beta1.DrillRotation{v1beta1.RotateClusters, v1beta1.RotateRegions, v1beta1.RotateZones}

// ValidateFailoverDrillSchedule checks a new schedule of drills.
func ValidateFailoverDrillSchedule(s *v1beta1.FailoverDrillSchedule) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&s.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	if len(s.Name) > maxScheduleName {
		errs = append(errs, field.TooLong(field.NewPath("metadata", "name"), "", maxScheduleName))
	}
	return append(errs, validateScheduleSpec(&s.Spec, field.NewPath("spec"))...)
}

// ValidateFailoverDrillScheduleUpdate checks a change of a schedule of drills.
func ValidateFailoverDrillScheduleUpdate(s, old *v1beta1.FailoverDrillSchedule) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&s.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, validateScheduleSpec(&s.Spec, field.NewPath("spec"))...)
}

func validateScheduleSpec(s *v1beta1.FailoverDrillScheduleSpec, path *field.Path) field.ErrorList {
	errs := validateWindows(&s.DrillWindows, path)
	if c, err := drilltimes.ParseCron(s.Schedule, time.UTC); err != nil {
		errs = append(errs, field.Invalid(path.Child("schedule"), truncated(s.Schedule), err.Error()))
	} else if c.Next(time.Unix(0, 0)).IsZero() {
		errs = append(errs, field.Invalid(path.Child("schedule"), s.Schedule, "never comes"))
	}
	if n := s.StartingDeadlineSeconds; n != nil && (*n < 10 || *n > 86400) {
		errs = append(errs, field.Invalid(path.Child("startingDeadlineSeconds"), *n, "must be from 10 to 86400"))
	}
	errs = append(errs, between(s.SuccessfulHistoryLimit, 0, maxHistory, path.Child("successfulHistoryLimit"))...)
	errs = append(errs, between(s.FailedHistoryLimit, 0, maxHistory, path.Child("failedHistoryLimit"))...)
	template := path.Child("template")
	errs = append(errs, unversioned.ValidateLabels(s.Template.Labels, template.Child("metadata", "labels"))...)
	errs = append(errs, apivalidation.ValidateAnnotations(s.Template.Annotations, template.Child("metadata", "annotations"))...)
	if s.Template.Spec.Windows != nil {
		errs = append(errs, field.Forbidden(template.Child("spec", "windows"), "must be left out: those of the schedule are used"))
	}
	spec := s.Template.Spec.DeepCopy()
	spec.Windows = nil
	errs = append(errs, validateRotation(s, spec, path)...)
	return append(errs, validateDrillSpec(spec, template.Child("spec"))...)
}

// truncated returns the part of a long text that an error shows.
func truncated(text string) string {
	const most = 60
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// validateRotation checks what takes turns, and puts a name in place of "*" in the scope of the template.
func validateRotation(s *v1beta1.FailoverDrillScheduleSpec, spec *v1beta1.FailoverDrillSpec, path *field.Path) field.ErrorList {
	if s.Rotate == "" {
		return nil
	}
	if !slices.Contains(rotations, s.Rotate) {
		return field.ErrorList{field.NotSupported(path.Child("rotate"), s.Rotate, rotations)}
	}
	scope, in := path.Child("template", "spec", "scope"), &spec.Scope
	candidates, name := &in.Zones, "zones"
	switch s.Rotate {
	case v1beta1.RotateRegions:
		candidates, name = &in.Regions, "regions"
	case v1beta1.RotateClusters:
		candidates, name = &in.Clusters, "clusters"
	}
	var errs field.ErrorList
	if len(*candidates) == 0 {
		errs = append(errs, field.Required(scope.Child(name), fmt.Sprintf("names what rotate: %s takes in turn; \"*\" is all of them", s.Rotate)))
	}
	if len(in.Zones)+len(in.Regions)+len(in.Clusters) > len(*candidates) {
		errs = append(errs, field.Invalid(path.Child("rotate"), s.Rotate, fmt.Sprintf("template.spec.scope must have %s only", name)))
	}
	if slices.Contains(*candidates, v1beta1.RotateAll) {
		if len(*candidates) > 1 {
			errs = append(errs, field.Invalid(scope.Child(name), v1beta1.RotateAll, "must be alone: it is all of them"))
		}
		*candidates = []string{"all"}
	}
	return errs
}

// validateWindows checks when drills may be under way.
func validateWindows(w *v1beta1.DrillWindows, path *field.Path) (errs field.ErrorList) {
	if _, err := drilltimes.ParseZone(w.TimeZone); err != nil {
		errs = append(errs, field.Invalid(path.Child("timeZone"), truncated(*w.TimeZone), "must be a name of the IANA time zone database, as Europe/Berlin"))
	}
	for _, windows := range []struct {
		name  string
		texts []string
	}{{"allowedWindows", w.AllowedWindows}, {"blockedWindows", w.BlockedWindows}} {
		path, texts := path.Child(windows.name), windows.texts
		if len(texts) > maxWindows {
			errs = append(errs, field.TooMany(path, len(texts), maxWindows))
			continue
		}
		for i, text := range texts {
			if _, err := drilltimes.ParseWindow(text); err != nil {
				errs = append(errs, field.Invalid(path.Index(i), truncated(text), err.Error()))
			}
		}
	}
	if n := len(w.BlockedDates); n > maxBlockedDates {
		return append(errs, field.TooMany(path.Child("blockedDates"), n, maxBlockedDates))
	}
	for i, date := range w.BlockedDates {
		if _, err := time.Parse(drilltimes.DateFormat, date); err != nil {
			errs = append(errs, field.Invalid(path.Child("blockedDates").Index(i), truncated(date), "must be a day as 2026-12-24"))
		}
	}
	return errs
}
