// Package placement decides which clusters hold federated objects and how their replicas divide, and writes the
// decision to the object's placement annotation, where propagation reads it.
//
//	c, err := placement.New(options)
//	err = c.Run(ctx)
//
// All deciding is done by the pure functions of plan, one object after the other, out of one ledger of room: what is
// decided is taken from it at once, and stays taken until the cluster's capacity report can have seen the pods. When
// clusters or policies change, all objects are decided in one pass, in the order of their priority, before the
// first of them is written. Objects are then written in that order, many at once.
//
// Writing a decision down costs one write when it changes. It buys a decision that is the same after a restart, that
// anyone can read, and that does not hang on members that cannot be asked. Deciding is the work of one goroutine:
// some 20 µs an object, so that nothing is gained by more.
package placement
