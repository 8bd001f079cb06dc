// Package dnskeys keeps the keys that sign the federation's zone (DNSSEC) in a Secret of the federation, which is
// encrypted at rest, has all servers of the zone sign with them, and rolls them.
//
//	err := dnskeys.Options{Secrets: …, Zone: "example.com.", Make: true, Use: server.Sign}.Run(ctx)   // each server
//	dnskeys.Keeper{Secrets: …, Zone: "example.com.", Settings: …, Above: …, Recorder: …}.Run(ctx)      // one process
//
// The Secret is dns-signing-keys in federation-system. Its entry signing.pem is the key that signs; all others are published
// beside it. An annotation has where each of them stands, so that keys and state change in one write; servers look at
// the keys, and for which of them the parent zone is to have DS records. Who may make the first key does so where it is missing: of several the
// first one wins, and the others take what is there. What cannot be read changes nothing.
//
// The Keeper asks plan what becomes of the keys, once a minute, and tells people by events of the Secret and metrics.
// What people do to the Secret by hand is taken up (plan.Adopt).
//
// What was traded: the Secret is read every 30 s and not watched, so that who only reads needs the right to get this one
// Secret, and no right to list.
package dnskeys
