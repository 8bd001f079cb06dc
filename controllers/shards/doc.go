// Package shards shares the virtual shards of the federation out among replicas of the controllers.
//
//	err := shards.Run(ctx, shards.Options{Leases: leases, Name: hostname, Work: func(ctx context.Context, held plan.Set) error { … }})
//
// Work runs with the shards that this replica holds, and runs anew when they change. Replicas meet in Leases:
//
//   - Each has one of its own, which it renews. Whose Lease has not changed for Timing.Duration is dead; one
//     who has not managed to renew his for Timing.Deadline, which is less, stops his work by himself.
//   - One more Lease bears the table: who holds which shard. It is written only when something changes, and
//     only by one who saw what was there before (resourceVersion), so two never hold one shard.
//
// Two writes every four seconds for each replica are all that this costs at rest.
//
// What was traded: work is ended and begun anew when the set changes, with new caches, instead of caches
// that grow and shrink. It costs a moment in which this replica writes nothing. Nobody can stop a request
// that a member has taken and not yet answered; it is why writes to members carry preconditions.
package shards
