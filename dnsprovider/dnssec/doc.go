// Package dnssec signs the records of a zone (RFC 4034, RFC 4035): keys, signatures, proofs that something
// is not there, and what the parent zone must know. All of it is values: who has a clock and a place for keys
// hands them in.
//
//	key, err := dnssec.NewKey(dnssec.ECDSAP256)
//	signer := dnssec.Signer{Zone: "example.com.", Key: key}
//	signature, err := signer.Sign(records, time.Now())
//
// One key signs everything (a combined signing key, ADR 29). What is not there is denied by "compact" NSEC
// records (RFC 9824), each made for the question: a zone needs no order of names for that, and nobody can
// walk it.
//
// What was traded: signing costs some 50 µs for a record set, so it is done when a record changes and not when it
// is asked for; only the proof that a name does not exist is made on the spot. Expirations are spread by the name, so
// that a large zone is not signed anew all at once.
package dnssec
