// Package plan decides which DNS records the federated Services have. It is pure: Records makes
// values of values, and the order of what goes in does not matter.
//
// With P = <service>.<namespace>.<federation>.svc there are three levels of names:
//
//	zone    P.<zone>.<region>.<dns zone>
//	region  P.<region>.<dns zone>
//	global  P.<dns zone>
//
// Beyond these there are hosts: those of an Ingress' rules, and further ones that a Service's settings ask for. Of two
// objects that want one, the older has it (Claims).
//
// A level at which at least one cluster serves has the addresses of all that do. A level at which none does is a CNAME
// to the next level up. A cluster serves when it is ready and the object's annotation lists addresses for it: a Service
// has a ready endpoint there. The names of a zone and a region exist for every joined cluster that the annotation
// names, also while it cannot be reached, so that clients near it are led on and not told "no such name".
//
// What a cluster has is ranked: it serves; it is drained; its load balancer does not answer the federation's check,
// where the settings ask for one; it served when it was last seen. Global and host names give
// the best rank that there is, so they are empty only when the members say that nothing is ready anywhere. Settings
// say which of the clusters that serve are given: by weight and by region as variants, of which the server chooses.
//
// A load balancer that is known by its host name becomes a CNAME where it is alone at its level:
// then its own DNS keeps its addresses and their time to live. Beside others a name can have no
// CNAME, so its addresses are needed: Plan.Resolve says which, and Input.Resolved brings them. Until
// they are known, and where nothing else serves at the level, the first host name is used alone.
//
// Plan.Targets say which load balancers are to be checked, and Input.Failing brings those that do not answer. What has
// not been checked counts as answering. When more than half of an object's clusters fail, though they say that they
// serve, the check counts for nothing: it is more likely that the federation cannot reach them.
//
// What was traded: a zone or region whose label cannot be one label of a DNS name (a dot in it, say)
// has no names at that level. To put something in its place could make two places share one name.
package plan
