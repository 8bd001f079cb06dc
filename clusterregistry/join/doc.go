// Package join makes a cluster a member of a federation, and ends that.
//
// Use: fill a Request with clients of both sides and call Join or Unjoin. Both can be called again
// after they were interrupted, and Join again refreshes everything.
//
// In the member: the namespace federation-system, a ServiceAccount, a ClusterRole with the verbs that
// propagation needs and no others, and its bindings. All of it is owned by the ClusterRole, so that
// deleting that one object takes everything away, by the member's own garbage collector; the account
// may delete only that. What is installed also, such as the node agent, is owned by it, too. At the federation: a Secret with the address's CA and a token, and the Cluster.
//
// What was traded:
//   - The token lasts a day and the registry renews it, which ends the one before; an account's token that never
//     expires would be simpler and could be stolen once for ever.
//   - The account may read and write Secrets, because Secrets are propagated. Who may read the
//     Secrets in the federation's own namespace can do the same.
//   - Rights cannot say "only what bears our mark": fences do, by ValidatingAdmissionPolicies, from Kubernetes 1.30 on.
//   - impersonate is given only on demand: with it whoever holds the token is everybody.
package join
