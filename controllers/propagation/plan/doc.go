// Package plan decides, for one federated object, what each member is to hold, which single
// operation brings a member there, and what status the federated object has in sum. It is pure:
// objects in, decisions and reasons out.
//
// A Source is the object with its placement and policy, a Target the member: Desire says what is wanted there,
// Operate what is to be done. Pace keeps the law that ready replicas never fall below what was or is asked for;
// MayUpdate the order of a rollout; Summarize sums up.
//
// One engine serves all kinds: a kind is a row of Kinds. Whether a copy is in sync is told without
// asking the member: the hash of what was applied last stands in an annotation of the copy (so a
// field that the federation dropped is noticed), and every value that we want must stand in the
// observed copy (so drift is noticed). What a member adds of its own is of no concern to us.
package plan
