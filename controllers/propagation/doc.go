// Package propagation makes every member match the federation, and reports back. It is one engine for all kinds: those of
// v1beta1.FederatedKinds, or Options.Kinds.
//
//	c, err := propagation.New(options)   // informers of the federation, UID, recorder
//	registry.Add(c)                      // c.Engage is called for each member that can be reached
//	err = c.Run(ctx)
//
// Each member has its own queue, workers and deadlines, so a slow one delays no other. An item is an object's key. A worker
// syncs it (syncMember):
//
//	snapshots   the state from the caches and the ledger, and what only the federation or the member knows
//	plan.Next   the one missing step, and why: all decisions are made there
//	dispatcher  the write, with its preconditions
//	ledger      what is remembered: the write until the cache has it, and the outcome
//	reporter    the status of the federated object, summed up over its copies
//
// The table above triggers shows which events enqueue which keys. A second pass without a change writes nothing and reads
// nothing.
//
// Creates and updates are server-side applies by one field manager. A create carries resourceVersion "1", which no object ever
// has: the API server ignores it if the object does not exist, and answers 409 if it does. So one request creates and never
// overwrites. An update carries the UID of the observed copy, so it never recreates or hits another one.
//
// The final and the current desired state differ while replicas move, or a change rolls from cluster to cluster: a copy
// shrinks only as far as ready replicas elsewhere make up for it (ADR 11), and keeps its pod template until its turn. Such a
// copy is Progressing; it is synced again when another copy of the object changes.
//
// Several controllers can share the objects, by Options.Owns, and the kinds, by Options.Kinds (ADR 12). Each ends completely
// with the contexts of Run and Engage.
//
// An unreachable member is not handled here: it is engaged again when it returns, and stale copies are deleted first. The
// deletion of a federated object waits for the reachable members, not for the others.
package propagation
