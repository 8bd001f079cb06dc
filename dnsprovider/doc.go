// Package dnsprovider has DNS zones as data, and the interface to DNS servers.
//
// A zone is a list of RRSets in canonical form. Diff compares the present and the desired content and returns a ChangeSet; a
// Provider applies it:
//
//	have, err := provider.Records(ctx, zone)
//	changes := dnsprovider.Diff(have, want)
//	err = provider.Apply(ctx, zone, changes)
//
// A ChangeSet has one Step per name. What leaves a name and what comes to it is in the same Step, because a name may not have a
// CNAME beside anything else: a switch from A to CNAME in two messages leaves a moment without the name, or the wrong final
// state.
//
// Every Step says what it expects to find. A provider that finds something else refuses the whole ChangeSet with a
// ConflictError: read again, and diff again. So two writers cannot undo each other unseen, and nobody deletes what they have
// not seen.
//
// A set may have Variants, of which a server that can choose (a Chooser) gives one at a time, by weight or by the region that a
// client is near. Rdata is the union of them, so a server that cannot choose gives all, and every client gets an answer.
//
// What was traded: record data is presentation text instead of a Go type for each record type. It compares, sorts and prints
// without any knowledge of the type, and every provider's API takes it; only A, AAAA and CNAME are checked here. Names are
// plain host names: letters, digits, "-" and "_"; no wildcards and no escapes.
//
// The folders below have one provider for each kind of server; providertest, the suite that all of them pass; and servertest,
// which runs real servers for tests.
package dnsprovider
