package v1beta1

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func jobWith(apiVersion, kind string, conditions ...any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "status": map[string]any{"conditions": conditions}}}
}

func TestJobEnd(t *testing.T) {
	is := func(kind, status string) map[string]any { return map[string]any{"type": kind, "status": status} }
	for name, c := range map[string]struct {
		object *unstructured.Unstructured
		want   string
	}{
		"nothing":                 {nil, ""},
		"runs":                    {jobWith("batch/v1", "Job"), ""},
		"is complete":             {jobWith("batch/v1", "Job", is("Suspended", "False"), is("Complete", "True")), "Complete"},
		"has failed":              {jobWith("batch/v1", "Job", is("Failed", "True")), "Failed"},
		"is not complete":         {jobWith("batch/v1", "Job", is("Complete", "False")), ""},
		"fails, but has not yet":  {jobWith("batch/v1", "Job", is("FailureTarget", "True")), ""},
		"a Job of another group":  {jobWith("example.org/v1", "Job", is("Complete", "True")), ""},
		"another kind":            {jobWith("batch/v1", "CronJob", is("Complete", "True")), ""},
		"a condition of no shape": {jobWith("batch/v1", "Job", "Complete", map[string]any{"type": 1}), ""},
	} {
		if got := JobEnd(c.object); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestConditionOf: the status counts before the annotation, which counts for Propagated only.
func TestConditionOf(t *testing.T) {
	const noted = `{"type":"Propagated","status":"False","reason":"Noted"}`
	with := func(u *unstructured.Unstructured, annotation string) *unstructured.Unstructured {
		u.SetAnnotations(map[string]string{PropagatedAnnotation: annotation})
		return u
	}
	inStatus := map[string]any{"type": "Propagated", "status": "True", "reason": "InStatus"}
	for name, c := range map[string]struct {
		object       *unstructured.Unstructured
		kind, reason string
	}{
		"none":                          {jobWith("v1", "Secret"), ConditionPropagated, ""},
		"in the status":                 {with(jobWith("v1", "Pod", inStatus), noted), ConditionPropagated, "InStatus"},
		"in the annotation":             {with(jobWith("v1", "Secret"), noted), ConditionPropagated, "Noted"},
		"another is not there":          {with(jobWith("v1", "Secret"), noted), "Ready", ""},
		"an annotation that is no JSON": {with(jobWith("v1", "Secret"), "yes"), ConditionPropagated, ""},
		"nothing":                       {nil, ConditionPropagated, ""},
	} {
		if got, _ := ConditionOf(c.object, c.kind)["reason"].(string); got != c.reason {
			t.Errorf("%s: %q, want %q", name, got, c.reason)
		}
	}
}

func TestScaledBy(t *testing.T) {
	entry := func(manager, subresource, fields string) metav1.ManagedFieldsEntry {
		e := metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource}
		if fields != "" {
			e.FieldsV1 = metav1.NewFieldsV1(fields)
		}
		return e
	}
	const replicas = `{"f:spec":{"f:replicas":{}}}`
	for name, c := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    string
	}{
		"nobody":                    {nil, ""},
		"an autoscaler":             {[]metav1.ManagedFieldsEntry{entry("kubectl", "", replicas), entry("kube-controller-manager", "scale", replicas)}, "kube-controller-manager"},
		"the autoscaler of k3s":     {[]metav1.ManagedFieldsEntry{entry("k3s", "scale", replicas)}, "k3s"},
		"a person":                  {[]metav1.ManagedFieldsEntry{entry("kubectl-scale", "scale", replicas)}, ""},
		"the federation":            {[]metav1.ManagedFieldsEntry{entry("federation-propagation", "scale", replicas)}, ""},
		"not by the subresource":    {[]metav1.ManagedFieldsEntry{entry("operator", "", replicas)}, ""},
		"something else by it":      {[]metav1.ManagedFieldsEntry{entry("operator", "scale", `{"f:status":{}}`)}, ""},
		"fields that are not there": {[]metav1.ManagedFieldsEntry{entry("operator", "scale", "")}, ""},
	} {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetManagedFields(c.entries)
		if got, also := ScaledBy(&metav1.ObjectMeta{ManagedFields: c.entries}), ScaledBy(u); got != c.want || also != c.want {
			t.Errorf("%s: %q, and %q of an unstructured object, want %q", name, got, also, c.want)
		}
	}
}

func TestServiceName(t *testing.T) {
	for name, want := range map[string]bool{
		"web.shop.prod.svc.example.com":           true,
		"web.shop.prod.svc.east.example.com":      true,
		"web.shop.prod.svc.e1.east.example.com":   true,
		"x.web.shop.prod.svc.east.example.com":    false, // one label more
		"web.shop.prod.svc.x.e1.east.example.com": false, // one place more
		"shop.prod.svc.example.com":               false, // one less
		"web.shop.test.svc.example.com":           false, // another federation's
		"web.shop.prod.pod.example.com":           false,
		"web.shop.prod.svc.example.org":           false, // another zone
		"web.shop.prod.svc":                       false,
		"web.shop.prod.svc.notexample.com":        false,
		"":                                        false,
	} {
		if got := ServiceName("Prod", "example.com", name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
