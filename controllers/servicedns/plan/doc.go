// Package plan decides which DNS records the federated Services have. It is pure: Records is a function of values, and the
// order of its input does not matter.
//
// With P = <service>.<namespace>.<federation>.svc there are three levels of names:
//
//	zone    P.<zone>.<region>.<dns zone>
//	region  P.<region>.<dns zone>
//	global  P.<dns zone>
//
// In addition there are hosts: those of an Ingress' rules, and extra ones from a Service's settings. If two objects claim a
// host, the older one gets it (Claims).
//
// A level at which at least one cluster serves has the addresses of all that do. A level at which none does is a CNAME to the
// next level up. A cluster serves if it is ready and the object's annotation lists addresses for it: a Service has a ready
// endpoint there. The names of a zone and region exist for every joined cluster, once the annotation has any, even while it is
// unreachable, so that clients near it follow the CNAME instead of getting "no such name".
//
// Clusters are ranked: serving; drained; failing the federation's health check, if the settings have one; serving when last
// seen. Global and host names have the addresses of the best rank, so they are empty only if no member reports anything ready.
// Settings divide the answers among the serving clusters, by weight and by region: variants, from which the server chooses.
//
// A load balancer known by its host name becomes a CNAME if it is alone at its level: then its own DNS controls its addresses
// and their TTL. Beside others a name cannot have a CNAME, so its addresses are needed: Plan.Resolve lists such hosts, and
// Input.Resolved has their addresses. Until they are known, and if nothing else serves at the level, the first host name is
// used alone.
//
// Plan.Targets lists the load balancers to check, Input.Failing those that fail. Unchecked ones count as healthy. If more
// than half of an object's clusters fail though they report that they serve, the checks do not count: the federation is more
// likely unable to reach them.
//
// What was traded: a zone or region whose label is not a single DNS label (it contains a dot, say) has no names at that
// level. A substitute could give two places the same name.
package plan
