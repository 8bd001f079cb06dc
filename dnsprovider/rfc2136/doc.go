// Package rfc2136 keeps records in a DNS server that takes dynamic updates (RFC 2136) signed with a key (TSIG, RFC 8945): BIND,
// Knot DNS, PowerDNS and others.
//
//	provider, err := rfc2136.New(rfc2136.Options{Server: "192.0.2.53:53", Key: key})
//	err = provider.Apply(ctx, "example.com.", changes)
//
// A Step is part of one message, which the server applies whole or not at all (section 3.7): first what leaves the name, then
// what comes to it. Its prerequisites say what the name must hold, with data, and that what comes does not exist yet; so a
// change by another writer in between fails the message instead of being undone by it. A CNAME that comes names the types that
// must not be beside it, because a server ignores silently what would break that rule (section 3.4.2.2), after it has deleted
// the rest.
//
// Changes that need more than one message, from about a thousand names on, are made in order, message by message: if one fails,
// the earlier ones stay, and the error says how many names they have changed. Records is a zone transfer (AXFR), so the key
// needs permission for both.
//
// What was traded: everything is TCP, one connection per call, because the outcome of a lost UPDATE must not be guessed.
// Prerequisites have no TTL, so a set that somebody gave another TTL is replaced without a conflict. Records leaves out sets
// whose names are no host names (wildcards, escapes), and those that a server makes itself to sign the zone.
package rfc2136
