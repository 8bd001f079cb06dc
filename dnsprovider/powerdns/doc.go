// Package powerdns keeps records in a PowerDNS authoritative server, by its HTTP API (version 1;
// PowerDNS 4.7 and later).
//
//	provider, err := powerdns.New(powerdns.Options{URL: "https://192.0.2.53:8081", Key: key})
//	err = provider.Apply(ctx, "example.com.", changes)
//
// Changes are one PATCH of the zone, which the server carries out in one transaction of its database;
// those of more than a megabyte are several, each of whole steps. Within a step what leaves a name
// stands before what comes to it, as the server looks at a name while it goes along. The secondaries
// of a zone of the kind Master (Primary) are then notified: by itself the server would do so within
// a minute.
//
// The server clears its caches of what a PATCH changes. But an answer that is being made meanwhile
// comes into them afterwards, and would stay for 20 s: seen twice in 30 changes with one busy reader.
// So each name is flushed once more; seen no more in 450 changes.
//
// What was traded: the API cannot make a change depend on what is there. So the names are read before
// every PATCH, and between the two somebody else may write unseen; Apply is one at a time, so that at
// least nobody of this process does. Where that is not enough: PowerDNS takes signed updates too, see
// package rfc2136. Records that are disabled are taken for not there, and what replaces a set of them
// replaces them as well.
package powerdns
