// Package batch has what providers share that stand before a service whose API takes changes in
// batches of limited size: it makes a dnsprovider.Provider of two calls, List and Change.
//
//	&batch.Provider{Name: "Route 53", Service: api, Most: 32000, Size: characters}
//
// What fits into one batch is one call of Change, and as atomic as that. What does not is read and
// checked whole before the first batch goes out, so that it is not stale from the beginning, and
// then goes batch by batch; steps stay whole. A failure in between is a PartialError: that is as near
// as such a service comes to "all or none".
//
// A service that does not compare (Blind) is read and checked before every change. Between that and
// the change somebody else may write unseen, another process; the next reading finds it.
//
// A service that takes no TTL below some least gets that instead (MinTTL). Who reads finds what he
// wrote: otherwise each look at the zone would find a difference, and write again.
package batch
