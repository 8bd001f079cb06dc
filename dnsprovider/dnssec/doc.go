// Package dnssec signs the records of a zone (RFC 4034, RFC 4035): keys, signatures, denials, and what the parent zone must
// know. It is pure: the caller provides the time, and stores the keys.
//
//	key, err := dnssec.NewKey(dnssec.ECDSAP256)
//	signer := dnssec.Signer{Zone: "example.com.", Key: key}
//	signature, err := signer.Sign(records, time.Now())
//
// One key signs everything (a combined signing key, ADR 29). Denials are "compact" NSEC records (RFC 9824), each made for the
// question: a zone needs no order of names for that, and nobody can walk it.
//
// What was traded: signing costs some 50 µs per record set, so it is done when a record changes and not when it is asked for;
// only the denial of a name is made on the spot. Expirations are spread by name, so that a large zone is not signed again all
// at once.
package dnssec
