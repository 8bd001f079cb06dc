// Package dnskeys keeps the key that signs the federation's zone (DNSSEC) in a Secret of the federation, which is
// encrypted at rest, and has all servers of the zone sign with it.
//
//	err := dnskeys.Options{Secrets: …, Zone: "example.com.", Make: true, Use: server.Sign}.Run(ctx)
//
// The Secret is dns-signing-keys in federation-system. Its entry signing.pem is the key that signs; all others are published
// beside it, for a rollover (ADR 29). Who may make it does so where it is missing: of several the first one wins, and the others
// take what is there. A key that is there is never replaced; one that cannot be read changes nothing.
//
// What was traded: the Secret is read every 30 s and not watched, so that who only reads needs the right to get this one
// Secret, and no right to list.
package dnskeys
