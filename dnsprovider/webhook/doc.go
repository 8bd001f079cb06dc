// Package webhook keeps records with a webhook provider of external-dns: a small HTTP server, usually in the same pod, in front
// of some DNS service. So every service with such a provider can be used.
//
//	provider, err := webhook.New(webhook.Options{URL: "http://127.0.0.1:8888"})
//
// The protocol is external-dns's (application/external.dns.webhook+json;version=1): GET / returns the zones, GET /records the
// records, POST /adjustendpoints what it would make of records; POST /records changes them. It has no credentials: let it
// listen on loopback only.
//
// What the protocol lacks: changes are not conditional, so all records are read before each change (Blind in package batch).
// The provider behind it decides whether a change is atomic, and whether a reader may find a name gone while it switches
// between addresses and CNAME. What that provider would alter, such as a TTL, is refused with an error that says so: otherwise
// each read would find a difference. A minimum TTL can be configured.
//
// What was tested: everything against a server in this folder's tests that behaves as the protocol's documents say.
package webhook
