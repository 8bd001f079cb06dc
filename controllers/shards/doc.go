// Package shards divides the federation's virtual shards among the replicas of the controllers.
//
//	err := shards.Run(ctx, shards.Options{Leases: leases, Name: hostname, Work: func(ctx context.Context, held plan.Set) error { … }})
//
// Work runs with the shards that this replica holds, and is restarted when they change. Replicas coordinate by Leases:
//
//   - Each has its own, which it renews. A replica whose Lease has not changed for Timing.Duration is dead. A replica that
//     has not renewed its Lease for Timing.Deadline, which is less, stops its work.
//   - One more Lease has the table: who holds which shard. It is written only when something changes, and only at the
//     observed resourceVersion, so two never hold one shard.
//
// At rest the cost is two writes every four seconds per replica.
//
// What was traded: when the set changes, work is restarted with new caches, instead of caches that grow and shrink. For a
// moment this replica writes nothing. A request that a member has accepted and not answered cannot be stopped, which is why
// writes to members carry preconditions.
package shards
