// Package plan divides the virtual shards among the replicas of the controllers.
//
//	turn := plan.Next(table, live, self, settled)
//
// Each replica calls the same function for itself. It moves as few shards as possible, and comes to rest with no replica
// holding two more than another. Replicas may call it with an old table, or disagree about who is alive: then some shards
// move more than once. But the table is in one place and written conditionally, so two never hold one shard.
package plan
