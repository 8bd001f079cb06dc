// Package plan decides which EndpointSlices of other clusters a member has. It is pure: Operate compares the desired slices of
// one Service with the existing ones, and returns the missing writes.
//
// A slice has addresses of one other cluster, of one family: of its load balancers, or, of a Service without any, of ready pods with the
// same ports. Its labels are those of KEP-1645. It lacks
// kubernetes.io/service-name, so kube-proxy ignores it (ADR 46). It is owned by the copy of the Service, so that the member's
// garbage collector deletes it with the copy.
//
// A cluster's addresses are ready if no other cluster has a better rank: serving; if none, drained; then failing their check;
// then unseen. So addresses never go out of use only because the federation cannot see their cluster (fail static). A cluster
// that reports no ready endpoint has no slice.
//
// What was traded: the ports of load balancers are those of the member's own copy. Overrides that give a Service other ports in some clusters
// are not followed.
package plan
