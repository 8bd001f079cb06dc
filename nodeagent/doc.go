// Package nodeagent makes Services work on one node: it watches Services, EndpointSlices and its Node, computes the ruleset,
// and passes the changes to a Writer, which brings them into the kernel.
//
//	watch ─▶ ruleset.Model ─▶ changes ─▶ Writer (iptables, nftables)
//	                              └────▶ health check node ports, metrics, stale flows
//
// How to use it: New with a Config, then Run. By default it does not wait for more changes: an event is written at once, and
// events during a write go into the next one. While the API server is away the rules stay; they also stay when the agent ends.
//
// What was traded: a failed write is not analyzed. The next one is a Sync, which reads what the kernel holds.
package nodeagent
