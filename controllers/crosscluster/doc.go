// Package crosscluster tells each member where else its Services are served: for each other cluster with load balancer addresses of
// a Service it writes an EndpointSlice there, which the node agent reads (ADR 46).
//
//	offers := crosscluster.NewOffers()            // one in a process
//	names, err := servicedns.New(servicedns.Options{…, Offers: offers.Set})
//	c := crosscluster.New(crosscluster.Options{Offers: offers, …})
//	err = c.Engage(ctx, member)                   // for each member that can be reached, with propagation's informers
//	err = c.Run(ctx)
//
// What clusters have of a Service, and how they are, is what servicedns finds for DNS: it is handed over in the process, for nothing
// of it is more to be decided or kept. Nothing is watched for it at the federation, and in members only what propagation
// watches there anyhow.
//
// Each member has a queue, workers and deadlines of its own, so a slow one holds up nobody. An item is a Service; a worker compares what
// the slices in the cache are with what they should be (package plan) and writes what differs, with preconditions. An unchanged
// world is not written to. A member that cannot be reached keeps what it has.
package crosscluster
