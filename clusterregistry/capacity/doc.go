// Package capacity watches the nodes and pods of the members and writes the room that each has to Cluster.status.capacity,
// where placement reads it.
//
//	registry.Follow(ctx, capacity.New(capacity.Options{Client: federation}))
//
// Of nodes and pods only what package room sums up is kept. A member is summed up when something has changed, and
// written at most every five seconds, and only when the sums differ; news of pods that find no room goes out
// after a second.
//
// What was traded:
//   - All pods of a member are watched, not only ours, for they take room too: a few hundred bytes for each, and
//     the traffic of their changes. Without the right to see pods there is no report, and the cluster counts as
//     having room without limit, as it does before its first report.
//   - The pods of a Deployment are counted for it by the name of their ReplicaSet and its hash; ReplicaSets are not watched.
package capacity
