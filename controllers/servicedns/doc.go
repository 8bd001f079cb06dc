// Package servicedns keeps the federated Services' names in DNS.
//
//	controller, err := servicedns.New(servicedns.Options{Informers: …, Federation: "fed", Zone: "example.com", Provider: server})
//	err = controller.Run(ctx)
//
// It watches the federation's Services, with the annotation in which the propagation engine gathers
// their load balancers, and Clusters. What changes is planned again (package plan), compared with
// what was applied last, and given to the provider at once: no timer is on the way. Changes that
// come while the provider is busy go together in its next call. An unchanged world makes no call.
//
// The first pass reads the zone from the provider and makes it right; the provider hears of it even
// when nothing changes, as it may be waiting for that to answer at all. After a failed call nothing
// that we remember is trusted: the pass after it reads the zone again. Names that do not have the
// form of this federation's are left alone, so several may share a zone.
//
// A Service that is being deleted leaves DNS at once, so that clients stop coming before its pods go.
//
// What was traded: host names of load balancers are looked up again at the pace of our TTL, beside
// the passes, and a lookup that fails keeps the addresses that were known: a resolver's bad minute
// takes nothing out of DNS.
package servicedns
