package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// Condition is one condition of a federated object.
type Condition struct {
	Status, Reason, Message string
	Since                   time.Time
}

// ConditionOf returns the condition of a type, or nil.
func ConditionOf(u *unstructured.Unstructured, kind string) *Condition {
	c := v1beta1.ConditionOf(u, kind)
	if c == nil {
		return nil
	}
	text := func(key string) string { s, _ := c[key].(string); return s }
	at, _ := time.Parse(time.RFC3339, text("lastTransitionTime")) // zero if unknown
	return &Condition{Status: text("status"), Reason: text("reason"), Message: text("message"), Since: at}
}

// problem returns the condition as an explanation has it.
func (c *Condition) problem() *v1beta1.PropagationProblem {
	p := &v1beta1.PropagationProblem{Status: c.Status, Reason: c.Reason, Message: c.Message}
	if !c.Since.IsZero() {
		p.Since = new(metav1.NewTime(c.Since))
	}
	return p
}
