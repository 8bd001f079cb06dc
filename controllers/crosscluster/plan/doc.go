// Package plan decides which EndpointSlices a member holds of other clusters. It is pure: Operate compares what a
// member is to hold for one Service with what it holds, and returns the writes that are missing.
//
// A slice has the load balancer addresses of one other cluster, of one family. Its labels are those of KEP-1645, and it
// lacks kubernetes.io/service-name: to kube-proxy it is nobody's (ADR 46). It is owned by the copy of the Service, so that
// the member's own garbage collector takes it when the copy goes.
//
// A cluster is ready there when none of the other clusters is better: the clusters that serve; where none does, the drained ones;
// then those that fail their check; then those that cannot be seen. So the addresses of a cluster are never out of use
// only because the federation cannot see (fail static). A cluster that says itself that it has no ready endpoint has no slice.
//
// What was traded: the ports are those of the member's own copy. Overrides that give a Service other ports in some
// clusters are not followed.
package plan
