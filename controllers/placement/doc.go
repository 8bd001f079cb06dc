// Package placement decides which clusters hold federated objects and how their replicas are divided. It writes the decision
// to the object's placement annotation, which propagation reads.
//
//	c, err := placement.New(options)
//	err = c.Run(ctx)
//
// The pure functions of scheduler decide, one object after another, from one ledger of room: a decision takes its room at once, and
// the room stays reserved until the cluster's capacity report can include the pods. When clusters or policies change, one pass
// decides all objects, in the order of their priority, before the first is written. They are then written in that order, many
// in parallel.
//
// Storing a decision costs one write when it changes. In return it is the same after a restart, anyone can read it, and it
// does not depend on members that do not answer. One goroutine decides: at some 20 µs an object, more would gain nothing.
package placement
