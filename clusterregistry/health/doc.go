// Package health decides what is said of a member cluster: from what was known and the evidence of
// one check of its API it makes the conditions Ready and Offline, and says when to check next.
//
// Use: keep a State for each cluster, call Judge after each check, write what Report returns when it
// says that something changed.
//
// What was traded:
//   - One bad check changes nothing, it only brings the next check forward; Threshold bad checks in a
//     row do. So a lost packet costs no failover, and a dead cluster is known after two timeouts.
//   - Why a cluster is not ready is changed more slowly, after Settle equal checks, so that a cluster
//     that starts is not said to refuse its credential.
//   - A check that times out while the cluster sends us anything else is "slow", not "unreachable":
//     an overloaded cluster is not taken for a dead one. It is given SlowThreshold checks.
//   - One good check brings a cluster back: what it costs to be wrong is one more change.
//   - Only Ready=True means that a cluster can be used. A refused credential and a certificate that is not trusted are
//     no dead cluster: the reason says so, and failover goes by it.
//
// The package is pure: values in, values and reasons out.
package health
