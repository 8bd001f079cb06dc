// Package plan decides, for federated objects, which clusters hold them and how many replicas of them. It is pure:
// values in, the placement and the reasons for it out.
//
//	w := plan.NewWorld(clusters, policies)   // all that decisions depend on besides the object
//	o, err := plan.Read(u)                   // what matters of one object
//	d := plan.Decide(o, w, now)              // where it goes, why, and until when that holds
//	all := plan.DecideAll(objects, w, now)   // many, by priority, out of one ledger of room
//
// What runs where is taken from the last placement, not from the members: so a decision needs no member to answer,
// and is the same after a restart. Deciding again on the result of a decision changes nothing.
//
// A decision takes these steps: the policy that governs the object, and what its annotations say instead (wants.go);
// what each cluster may have of it: as much as there is room for, no more than it has, or nothing (seats.go); the
// division over these clusters, by the scheduler (draft.go); and, where clusters are out or returning, a step from
// what is towards what is to be, that is no larger than it has to be (failback.go).
package plan
