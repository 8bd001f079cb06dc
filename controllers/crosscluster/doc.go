// Package crosscluster writes to each member which other clusters serve its Services: for each other cluster with load
// balancers of a Service, or with pods that the member's reach, an EndpointSlice that the node agent reads (ADRs 46 and 194).
//
//	offers := crosscluster.NewOffers()            // one in a process
//	names, err := servicedns.New(servicedns.Options{…, Offers: offers.Set})
//	c := crosscluster.New(crosscluster.Options{Offers: offers, …})
//	err = c.Engage(ctx, member)                   // for each member that can be reached, with propagation's informers
//	err = c.Run(ctx)
//
// The offers, what clusters have of a Service and their rank, are what servicedns finds for DNS. They are handed over in the
// process, because nothing more is decided or stored. The federation is not watched for them, and members only as propagation
// watches them anyhow. Pods are what the EndpointSlices of the members' copies say, which propagation's informers hold.
//
// Each member has its own queue, workers and deadlines, so a slow one delays no other. An item is a Service. A worker compares
// the slices in the cache with the desired ones (package plan) and writes the differences, with preconditions. Without a
// change it writes nothing. An unreachable member keeps what it has.
package crosscluster
