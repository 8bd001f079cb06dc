// Package plan divides the virtual shards over the replicas of the controllers.
//
//	turn := plan.Next(table, live, self, settled)
//
// Each replica asks the same function for itself. What it returns moves as few shards as can be, and comes
// to rest with no replica holding two more than another. It may be asked with an old table or by replicas
// that don't agree on who lives: then some shards move more than once, but who holds a shard is written in
// one place, by a conditional write, so that two never hold one.
package plan
