// Package propagation brings every member to what the federation says, and reports back: the one
// engine for all kinds, those of v1beta1.FederatedKinds or those of Options.Kinds.
//
//	c, err := propagation.New(options)   // informers of the federation, UID, recorder
//	registry.Add(c)                      // c.Engage is called for each member that can be reached
//	err = c.Run(ctx)
//
// Each member has a queue, workers and deadlines of its own, so a slow one holds up nobody. An item
// is an object's key. A worker syncs it (syncMember):
//
//	snapshots   what the caches and the ledger say, and what only the federation or the member knows
//	plan.Next   the one step that is missing, and why: all decisions are made there
//	dispatcher  the write, with what has to be so for it to be carried out
//	ledger      what is remembered: the write until the cache has it, and the outcome
//	reporter    the status of the federated object, summed up over its copies
//
// What wakes what is the table above triggers. A second pass over an unchanged world writes nothing and reads nothing.
//
// Creates and updates are server-side applies under one field manager. A create carries the
// resourceVersion "1", which no object ever has: the API server ignores it for an object that is not
// there and answers 409 for one that is. So one request creates and never overwrites. An update
// carries the UID of the copy that was observed, so it never revives or hits another one.
//
// What is wanted in the end and what is applied now differ while replicas move, or a change rolls from cluster
// to cluster: a copy shrinks only as what is ready elsewhere makes up for it (ADR 11), and keeps its pod template
// until its turn. Such a copy is Progressing; it is synced again when another copy of the object changes.
//
// Several controllers can share the objects, by Options.Owns, and the kinds, by Options.Kinds (ADR 12). Each ends
// wholly with the contexts of Run and Engage.
//
// A member that cannot be reached has no place here: it is engaged again when it returns, and then
// stale copies go first. The deletion of a federated object waits for the members that can be
// reached, not for the others.
package propagation
