// Package clustersetip allocates addresses that are the same in all clusters to Services that ask for them (ADR 47).
//
//	c, err := clustersetip.New(clustersetip.Options{Ranges: ranges, …})
//	err = c.Run(ctx)  // in one process at a time
//
// A Service asks with the annotation federation.kubernetes.io/clusterset-ip: auto. Its address is held by an IPAddress object
// of that name (networking.k8s.io/v1) at the federation, whose creation is the one deciding step. The address is then written
// to the annotation, which propagates to the copies. An IPAddress that somebody else creates reserves its address.
//
// Each change of a Service with the annotation, or of an IPAddress, triggers one pass over all of them (package plan). There
// is no separate repair loop, because a pass is one. Events and the condition ClusterSetIPAllocated report what a Service
// cannot have or has lost.
package clustersetip
