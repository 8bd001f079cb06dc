package main

import (
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

func TestBodyIsWhatWasApplied(t *testing.T) {
	rs := replicaSet(sample, 1)
	rs.Namespace, rs.Labels = sample, map[string]string{v1beta1.ManagedByLabel: "us", "else": "theirs"}
	rs.Spec.MinReadySeconds = 5 // not applied by us
	rs.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "federation", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1",
		FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{"f:labels":{"f:` + v1beta1.ManagedByLabel + `":{}}},
			"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{"f:metadata":{"f:labels":{"f:app":{}}}}}}`)}}}
	text, err := applied(rs)
	if err != nil {
		t.Fatal(err)
	}
	var got appsv1.ReplicaSet
	if err := json.Unmarshal(job{Namespace: "busy", Replicas: 2, Body: text}.body("web-00007"), &got); err != nil {
		t.Fatal(err)
	}
	if got.Name != "web-00007" || got.Namespace != "busy" || *got.Spec.Replicas != 2 || got.Spec.MinReadySeconds != 0 ||
		got.Spec.Selector.MatchLabels["app"] != "web-00007" || got.Spec.Template.Labels["app"] != "web-00007" ||
		len(got.Labels) != 1 || got.Labels[v1beta1.ManagedByLabel] != "00" {
		t.Errorf("%+v", got)
	}
}

func TestNothingIsLearntOfWhatIsNotOurs(t *testing.T) {
	if body, err := applied(replicaSet(sample, 1)); err == nil {
		t.Errorf("%q, and no error", body)
	}
}
