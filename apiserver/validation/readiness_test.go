package validation

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// readiness is a FailoverReadiness of a zone, or of a region.
func readiness(zone, region string) *v1beta1.FailoverReadiness {
	return &v1beta1.FailoverReadiness{
		ObjectMeta: metav1.ObjectMeta{Name: "r", ResourceVersion: "1"}, Spec: v1beta1.FailoverReadinessSpec{Zone: zone, Region: region},
	}
}

// A FailoverReadiness is about one zone or one region, which is named as the labels of nodes name it.
func TestFailoverReadiness(t *testing.T) {
	long := strings.Repeat("x", 63)
	for spec, want := range map[[2]string]string{
		{"east/a", ""}:                 "",
		{"a", ""}:                      "",
		{"East_1/a.b", ""}:             "",
		{long + "/" + long, ""}:        "",
		{"", "east"}:                   "",
		{"", long}:                     "",
		{"", ""}:                       "spec: Invalid value: \"\": must name either a zone or a region",
		{"east/a", "east"}:             "spec: Invalid value: \"east/a\": must name either a zone or a region",
		{"east/", ""}:                  "spec.zone: Invalid value: \"east/\": must be ZONE or REGION/ZONE",
		{"/a", ""}:                     "spec.zone: Invalid value: \"/a\": must be ZONE or REGION/ZONE",
		{"east/a/b", ""}:               "spec.zone: Invalid value: \"east/a/b\": must be ZONE or REGION/ZONE",
		{"-a", ""}:                     "spec.zone: Invalid value: \"-a\"",
		{"east/" + long + "x", ""}:     "spec.zone: Invalid value",
		{"", "east/a"}:                 "spec.region: Invalid value: \"east/a\"",
		{"", long + "x"}:               "spec.region: Invalid value",
		{"", "e a"}:                    "spec.region: Invalid value: \"e a\"",
		{long + "x/" + long, ""}:       "spec.zone: Invalid value",
		{strings.Repeat("x", 130), ""}: "spec.zone: Invalid value",
	} {
		if got := text(ValidateFailoverReadiness(readiness(spec[0], spec[1]))); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("zone %q, region %q: %q, want %q", spec[0], spec[1], got, want)
		}
	}
	named := readiness("east/a", "")
	named.Name = "Zone.East"
	if got := fields(ValidateFailoverReadiness(named)); got != "metadata.name" {
		t.Errorf("a name with capitals: faults at %q", got)
	}
}

// What a FailoverReadiness is about is never changed; its labels are.
func TestFailoverReadinessStaysWhatItIsAbout(t *testing.T) {
	old, labelled := readiness("east/a", ""), readiness("east/a", "")
	labelled.Labels = map[string]string{"tier": "gold"}
	other := readiness("east/a", "")
	other.Name = "s"
	for want, object := range map[string]*v1beta1.FailoverReadiness{"": labelled, "spec": readiness("east/b", ""), "metadata.name": other} {
		if got := fields(ValidateFailoverReadinessUpdate(object, old)); got != want {
			t.Errorf("%+v: faults at %q, want %q", object.Spec, got, want)
		}
	}
	if got := fields(ValidateFailoverReadinessUpdate(readiness("", "east"), readiness("", "west"))); got != "spec" {
		t.Errorf("another region: faults at %q", got)
	}
}

// The status has at most MaxReadinessWords objects and names, and conditions as Kubernetes has them.
func TestFailoverReadinessStatus(t *testing.T) {
	old := readiness("east/a", "")
	condition := func(change func(*metav1.Condition)) []metav1.Condition {
		c := metav1.Condition{Type: v1beta1.ReadinessSurvivable, Status: metav1.ConditionTrue, Reason: v1beta1.ReadinessSurvived,
			LastTransitionTime: metav1.Unix(1, 0)}
		change(&c)
		return []metav1.Condition{c}
	}
	same := func(*metav1.Condition) {}
	for name, c := range map[string]struct {
		status v1beta1.FailoverReadinessStatus
		want   string
	}{
		"as much as there may be": {v1beta1.FailoverReadinessStatus{Conditions: condition(same), Worst: make([]v1beta1.ReadinessObject, MaxReadinessWords),
			Names: &v1beta1.ReadinessNames{Lost: make([]string, MaxReadinessWords)}}, ""},
		"an object more": {v1beta1.FailoverReadinessStatus{Worst: make([]v1beta1.ReadinessObject, MaxReadinessWords+1)}, "status.worst"},
		"a name more":    {v1beta1.FailoverReadinessStatus{Names: &v1beta1.ReadinessNames{Lost: make([]string, MaxReadinessWords+1)}}, "status.names.lost"},
		"a condition without a reason": {
			v1beta1.FailoverReadinessStatus{Conditions: condition(func(c *metav1.Condition) { c.Reason = "" })}, "status.conditions[0].reason"},
		"a condition that is there twice": {v1beta1.FailoverReadinessStatus{Conditions: append(condition(same), condition(same)...)}, "status.conditions[1].type"},
	} {
		object := readiness("east/a", "")
		object.Status = c.status
		if got := fields(ValidateFailoverReadinessStatusUpdate(object, old)); got != c.want {
			t.Errorf("%s: faults at %q, want %q", name, got, c.want)
		}
	}
	other := readiness("east/a", "")
	other.Name = "s"
	if got := fields(ValidateFailoverReadinessStatusUpdate(other, old)); got != "metadata.name" {
		t.Errorf("another object's status: faults at %q", got)
	}
}

// The name that the federation gives a FailoverReadiness is always one that it may have.
func TestFailoverReadinessHasAName(t *testing.T) {
	long := strings.Repeat("X", 63)
	for i, spec := range []v1beta1.FailoverReadinessSpec{
		{Zone: "east/a"}, {Zone: "a"}, {Region: "East_1"}, {Zone: long + "/" + long}, {Region: long}, {Zone: "E.a/B_c"}, {Zone: "0/0"}, {Region: "a-._b"},
	} {
		r := &v1beta1.FailoverReadiness{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.ReadinessName(spec)}, Spec: spec}
		if errs := ValidateFailoverReadiness(r); len(errs) > 0 {
			t.Error(fmt.Sprint(i, ": ", r.Name, ": "), errs.ToAggregate())
		}
	}
}
