// Package scheduler decides which clusters hold federated objects, and how many replicas of them. It is pure: values in, the
// placement and its reasons out.
//
//	w := scheduler.NewWorld(clusters, policies)   // all that decisions depend on besides the object
//	o, err := scheduler.Read(u)                   // one object, reduced to what matters
//	d := scheduler.Decide(o, w, now)              // where it goes, why, and how long that holds
//	all := scheduler.DecideAll(objects, w, now)   // many, by priority, from one ledger of room
//
// What runs where is read from the last placement, not from the members. So a decision needs no answer from a member, and is
// the same after a restart. Deciding again on the result of a decision changes nothing.
//
// A decision takes these steps: the governing policy, and the annotations that override it (wants.go); what each cluster may
// have: as much as there is room for, no more than it has, or nothing (seating.go, by the rules in seats.go); the division among these clusters, by
// apportion (draft.go); and, while clusters are failed over or failing back, a step from the current towards the desired state that is no
// larger than necessary (failback.go).
package scheduler
