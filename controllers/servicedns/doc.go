// Package servicedns keeps the federated Services' names in DNS.
//
//	controller, err := servicedns.New(servicedns.Options{Informers: …, Federation: "fed", Zone: "example.com", Providers: …})
//	err = controller.Run(ctx)  // in each process: plans, and keeps the Local provider right
//	controller.Lead(ctx)       // in one process at a time: keeps the others right
//
// It watches the federation's Services, with the annotation in which the propagation engine gathers
// their load balancers, and Clusters. What changes is planned again (package plan) and becomes the world:
// what shall be in DNS. Each provider has a goroutine (publisher) that compares the world with what it
// applied last and gives the provider the difference at once: no timer is on the way, and none waits for
// another. Changes that come while a provider is busy go together in its next call. An unchanged world
// makes no call.
//
// The first pass reads the zone from the provider and makes it right; the provider hears of it even
// when nothing changes, as it may be waiting for that to answer at all. After a failed call nothing
// that we remember is trusted: the pass after it reads the zone again. A provider that others write to
// is read back a while after each change and every few minutes: what was edited by hand is put right,
// and one that only says that it applied something is found out. Its ProviderState tells.
//
// Names that do not have the form of this federation's are left alone, so several may share a zone. The
// other names that we put in such a zone bear a mark, dnsprovider.Mark: ADR 19.
//
// Where an object's settings ask for it, who leads also asks its load balancers whether they answer (package probe). Which
// of them do not is written to a ConfigMap that all processes follow, federation-dns and the tools too: ADR 30.
//
// A Service that is being deleted leaves DNS at once, so that clients stop coming before its pods go.
//
// What was traded: host names of load balancers are looked up again at the pace of our TTL, beside
// the passes, and a lookup that fails keeps the addresses that were known: a resolver's bad minute
// takes nothing out of DNS.
package servicedns
