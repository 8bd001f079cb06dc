// Package servicedns keeps the names of federated Services in DNS.
//
//	controller, err := servicedns.New(servicedns.Options{Informers: …, Federation: "fed", Zone: "example.com", Providers: …})
//	err = controller.Run(ctx)  // in each process: plans, and keeps the Local provider up to date
//	controller.Lead(ctx)       // in one process at a time: keeps the others up to date
//
// It watches the federation's Services, with the annotation that propagation writes their load balancers to, and Clusters.
// It plans again what changes (package plan) and stores the result in the world: what should be in DNS. Each provider has a
// goroutine (publisher) that compares the world with what it applied last and applies the difference at once. No timer delays
// it, and no provider waits for another. Changes that come while a provider is busy are batched into its next call. Without
// a change there is no call.
//
// The first pass reads the zone from the provider and corrects it. It calls the provider even if nothing changes, because a
// provider may wait for that before it answers at all. After a failed call the publisher trusts nothing that it remembers:
// its next pass reads the zone again. A provider that others write to is read back some seconds after each change and every
// few minutes. This corrects manual edits, and finds providers that falsely report success. ProviderState has the result.
//
// Names that do not have the form of this federation's are left alone, so several federations may share a zone. Our other
// names in such a zone are marked with dnsprovider.Mark: ADR 19.
//
// If an object's settings ask for it, the leader also checks its load balancers (package probe). It writes the failing ones
// to a ConfigMap that all processes follow, including federation-dns and the tools: ADR 30.
//
// A Service that is being deleted leaves DNS at once, so that clients stop coming before its pods go.
//
// What was traded: host names of load balancers are looked up again once per TTL, apart from the passes. A failed lookup
// keeps the known addresses: a failing resolver removes nothing from DNS.
package servicedns
