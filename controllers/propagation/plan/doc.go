// Package plan decides, for one federated object, what each member should have, which single operation gets a member there,
// and the total status of the object. It is pure: objects in, decisions and reasons out.
//
// A Source is the object with its placement and policy, a Target the member. Desire returns what is wanted there, Operate what
// to do. Pace keeps the law that ready replicas never fall below what was or is asked for; MayUpdate the order of a rollout.
// Summarize sums up.
//
// One engine serves all kinds: a kind is a row of Kinds. Whether a copy is in sync is decided without asking the member: an
// annotation of the copy has the hash of the last apply (so a field that the federation dropped is noticed), and every desired
// value must be in the observed copy (so drift is noticed). Values that a member adds do not matter.
package plan
