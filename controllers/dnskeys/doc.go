// Package dnskeys keeps the DNSSEC keys of the federation's zone in a Secret of the federation, which is encrypted at rest,
// makes all servers of the zone sign with them, and rolls them over.
//
//	err := dnskeys.Options{Secrets: …, Zone: "example.com.", Make: true, Use: server.Sign}.Run(ctx)   // each server
//	dnskeys.Keeper{Secrets: …, Zone: "example.com.", Settings: …, Above: …, Recorder: …}.Run(ctx)      // one process
//
// The Secret is dns-signing-keys in federation-system. Its entry signing.pem is the signing key; all others are published
// beside it. An annotation has the phase of each, so that keys and state change in one write. Servers read the keys, and for
// which of them the parent zone is to have DS records. A process that may create the first key does so if it is missing: of
// several the first one wins, and the others use its key. Invalid content changes nothing.
//
// The Keeper asks plan once a minute what to do with the keys, and reports by events of the Secret and metrics. It takes up
// manual changes of the Secret (plan.Adopt).
//
// What was traded: the Secret is read every 30 s instead of watched, so that a reader only needs permission to get this one
// Secret, and none to list.
package dnskeys
