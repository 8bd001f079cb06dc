// Package clustersetip gives Services that ask for them addresses that are the same in all clusters (ADR 47).
//
//	c, err := clustersetip.New(clustersetip.Options{Ranges: ranges, …})
//	err = c.Run(ctx)  // in one process at a time
//
// A Service asks by the annotation federation.kubernetes.io/clusterset-ip: auto. What it gets is held by an IPAddress object of
// that name (networking.k8s.io/v1) at the federation, whose creation is the one step that decides, and then written into the
// annotation, which propagates to the copies. An IPAddress that somebody else makes reserves its address.
//
// Each change of a Service that asks, or of an IPAddress, makes one pass over all of them (package plan): there is no other repair
// loop, for a pass is one. What a Service cannot have, or lost, is told by events and the condition ClusterSetIPAllocated.
package clustersetip
