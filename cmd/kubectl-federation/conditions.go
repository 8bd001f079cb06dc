package main

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// condition is one condition of a federated object.
type condition struct {
	Status, Reason, Message string
	Since                   time.Time
}

// conditionOf returns the condition of a type, or nil.
func conditionOf(u *unstructured.Unstructured, kind string) *condition {
	c := v1beta1.ConditionOf(u, kind)
	if c == nil {
		return nil
	}
	text := func(key string) string { s, _ := c[key].(string); return s }
	at, _ := time.Parse(time.RFC3339, text("lastTransitionTime")) // zero if unknown
	return &condition{Status: text("status"), Reason: text("reason"), Message: text("message"), Since: at}
}
