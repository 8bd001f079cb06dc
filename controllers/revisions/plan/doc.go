// Package plan decides which revisions of a workload the federation keeps (ADR 126). It is a pure room.
//
//	want := plan.Decide(workload, have)
//
// A template has one revision. One that comes back finds the revision that it had, which then gets the next number, as in Kubernetes.
package plan
