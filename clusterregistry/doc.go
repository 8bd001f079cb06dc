// Package clusterregistry knows the member clusters and holds a live connection to each.
//
// Use:
//
//	r, err := clusterregistry.New(clusterregistry.Options{Config: federation, Recorder: recorder})
//	r.Add(engager)          // each part that wants to hear of members; r.Follow for one that may come late, and go
//	go r.Run(ctx)           // until ctx is done
//	m, err := r.Member("east-a") // ErrNotConnected while it cannot be reached
//
// A Member lives exactly as long as its cluster is ready. When the cluster is lost, or its address or
// credential changes, the Member's context ends, its connections are closed, and it is forgotten;
// when the cluster is back there is a new Member with fresh informers.
//
// How it is kept: each Cluster has a goroutine of its own (keeper) that checks, lets the pure room
// health judge, connects or disconnects, and writes the status when it changed. Keepers share no
// lock over I/O and no workers, so a hung cluster delays none of the others.
//
// What was traded:
//   - New informers for each connection instead of informers that wait: a relist costs a moment's
//     load on the member, but nothing sits out a backoff of up to half a minute, and nobody works
//     on a cache of which no one knows whether it is stale.
//   - Health checks have a connection of their own, HTTP/1.1, so that a hung one is thrown away by its
//     timeout, and one second between them: a small request a second for each cluster.
//   - A kind that the member does not let us see counts as empty, and is told in an event: the rest goes on. When it may
//     be seen, the member is taken up anew, for its users took it for empty.
//   - A cluster is known by the UID of its namespace kube-system. Of two Clusters that are one cluster, one is connected.
//   - Informers hold only what this federation made (by label); for a member with a hundred thousand
//     objects of its own nothing is read or kept of them.
package clusterregistry
