// Package batch has what providers of services share whose APIs take changes in batches of limited size: it makes a
// dnsprovider.Provider from two calls, List and Change.
//
//	&batch.Provider{Name: "Route 53", Service: api, Most: 32000, Size: characters}
//
// Changes that fit into one batch are one call of Change, and as atomic as that. Larger ones are read and checked as a whole
// before the first batch is sent, so that they are not stale from the start. They are then sent batch by batch; steps stay
// whole. A failure in between is a PartialError: the closest to atomicity that such a service allows.
//
// A service that does not compare (Blind) is read and checked before every change. Between that and the change another process
// may write unseen; the next read finds it.
//
// A service with a minimum TTL (MinTTL) gets that instead of a smaller one. A caller that reads finds the TTL that it wrote:
// otherwise each read of the zone would find a difference, and write again.
package batch
