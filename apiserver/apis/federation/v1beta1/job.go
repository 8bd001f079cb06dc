package v1beta1

import (
	"encoding/json"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// JobEnd returns how a Job, the federation's or a copy, has ended: Complete, Failed, or "" while it runs, and for other
// objects. A Job that has ended does not run again: it is neither placed, nor created, nor waited for.
func JobEnd(u *unstructured.Unstructured) string {
	if u == nil || u.GetKind() != "Job" || u.GroupVersionKind().Group != batchv1.GroupName {
		return ""
	}
	for _, end := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		if ConditionOf(u, string(end))["status"] == "True" {
			return string(end)
		}
	}
	return ""
}

// IndexedJob reports whether an object is a Job whose pods have indexes. They are counted in each cluster from 0, so such a Job cannot be
// divided: it goes whole to one cluster.
func IndexedJob(u *unstructured.Unstructured) bool {
	mode, _, _ := unstructured.NestedString(u.Object, "spec", "completionMode")
	return mode == string(batchv1.IndexedCompletion) && u.GetKind() == "Job" && u.GroupVersionKind().Group == batchv1.GroupName
}

// ConditionPropagated is the type of the condition that says whether all clusters are as desired.
const ConditionPropagated = "Propagated"

// ConditionOf returns the condition of the given type of any object, which must not be changed, or nil. For kinds
// without conditions, Propagated is in an annotation.
func ConditionOf(u *unstructured.Unstructured, kind string) map[string]any {
	if u == nil {
		return nil
	}
	list, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
	conditions, _ := list.([]any)
	for _, item := range conditions {
		if c, _ := item.(map[string]any); c["type"] == kind {
			return c
		}
	}
	if noted := u.GetAnnotations()[PropagatedAnnotation]; kind == ConditionPropagated && noted != "" {
		var c map[string]any
		_ = json.Unmarshal([]byte(noted), &c) // an invalid one is unknown
		return c
	}
	return nil
}
