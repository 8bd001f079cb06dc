package scheduler

import (
	"maps"
	"reflect"
)

// Alike reports whether two versions of an object get the same decision: they differ in nothing that it depends on.
func Alike(a, b *Object) bool {
	return alikeAsked(a, b) && a.Replicas == b.Replicas && maps.Equal(a.Made, b.Made) && alikePlaced(a, b)
}

// AsksNoMore reports whether an object asks for the same as a version of it before, for as many replicas at most. What it was
// placed may differ, and labels that lead to the same policy.
func (w *World) AsksNoMore(o, before *Object) bool {
	was := *before
	if w.policyOf(o) == w.policyOf(before) {
		was.Labels = o.Labels
	}
	return alikeAsked(o, &was) && o.Replicas <= before.Replicas
}

func alikeAsked(a, b *Object) bool {
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Namespace == b.Namespace && a.Name == b.Name &&
		a.Divided == b.Divided && a.Whole == b.Whole && a.Volumes == b.Volumes && a.Pending == b.Pending && a.Finished == b.Finished &&
		a.preferencesText == b.preferencesText && a.selectorText == b.selectorText && maps.Equal(a.Labels, b.Labels) && reflect.DeepEqual(a.Requests(), b.Requests())
}

func alikePlaced(a, b *Object) bool {
	if a.Current == nil || b.Current == nil {
		return a.Current == b.Current
	}
	return equalPlacements(a.Current, b.Current) && a.Current.Inputs == b.Current.Inputs
}
