// Package plan decides where the federation's load balancers send requests: values in, values and reasons out.
//
// Routes turns the Ingresses of the class "federation" into a Table, which says for a host and a path which pool a request goes to, as
// networking.k8s.io/v1 has it: paths by elements, the longest first, Exact before Prefix, wildcards for one label, and default
// backends. A host belongs to one namespace, that of the first Ingress with it (a DNSNameGrant, or who is known to have it in the
// federation's zone, goes before that). What other namespaces say of it counts for nothing, so nobody can take over what is served.
//
// Tables makes the table that follows another one by a change. It makes those hosts again that the change is about:
//
//	an Ingress          the hosts that it has or had; of a wildcard that changes hands, those below it, too
//	rules without host  all hosts of the namespace get others, and stay as they are otherwise
//	a Service           the hosts of the Ingresses that name it; the ports of Services, if it is of the load balancers' class
//	owners of hosts     those that are somebody else's
//	a DNSNameGrant      all
//
// A pool is a port of a federated Service of type LoadBalancer. Its targets are the addresses of the clusters' load balancers, as
// package servicedns offers them: serving, drained, failing the federation's check, unseen. DecidePool divides new requests among them:
//
//	rank    those of the best rank count that this load balancer reaches. If it reaches none, all count as before (fail static).
//	tier    clusters of its own region come before others; with the strategy Failover, the order of their priorities does.
//	spill   a tier that misses part of its weight keeps what is left of it (ADR 44 has the formula); the rest goes to the next tier.
//	weight  inside of a tier clusters share by weight, and the addresses of a cluster evenly. Those that are back begin with little.
//
// Services of the load balancers' class are served at their own ports, connection by connection, by pools of the same kind. A port belongs to one Service:
// the one whose status has it, or else the oldest. Only the ports that whoever runs a load balancer gives are served (World.ServicePorts).
//
// An Ingress may have TLS for its hosts passed on as it is (v1beta1.SSLPassthroughAnnotation): then each of them leads to one pool of connections.
//
// Addresses of the federation's own load balancers, and of the machine that decides, are no targets: connections would go in a circle.
//
// What this load balancer sees of a target is Health: two checks in a row failed, or it was ejected for how it answered. Ejection counts
// for at most half of the targets.
package plan
