// Package webhook keeps records with a webhook provider of external-dns: a small HTTP server, mostly
// beside us in the same pod, that stands before some DNS service. So every service for which such a
// provider exists can be had.
//
//	provider, err := webhook.New(webhook.Options{URL: "http://127.0.0.1:8888"})
//
// The protocol is external-dns's (application/external.dns.webhook+json;version=1): GET / says which
// zones it is for, GET /records what there is, POST /adjustendpoints what would become of records,
// POST /records changes them. It has no credentials: let it listen on loopback only.
//
// What the protocol does not have: changes are not conditional, so all records are read before each
// change (Blind in package batch); and whether a change is all or nothing, and whether a reader may
// find a name gone while it switches between addresses and CNAME, is up to the provider behind it.
// What that provider would alter, such as a TTL, is refused with an error that says so: otherwise each
// look would find a difference. A least TTL can be given.
//
// What was tested: everything against a server in this folder's tests that behaves as the protocol's
// documents say.
package webhook
