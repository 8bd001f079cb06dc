// Package plan says what a drain of a cluster does next, and what each step changes of the Cluster (ADR 13).
//
//	step, wait, err := plan.Next(cluster, now, ttl, providers)
//
// All that a drain needs to know is in the Cluster: its weight in DNS, its taints, and the annotation in which the drain notes what it
// found. So a drain that was interrupted goes on where it is, and an undrain undoes it exactly.
package plan
