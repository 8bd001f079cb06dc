// Package nodeagent makes Services work on one node: it watches Services, EndpointSlices and its Node, has the
// ruleset worked out of them, and gives what changed to a Writer, which brings it into the kernel.
//
//	watch ─▶ ruleset.Model ─▶ what changed ─▶ Writer (iptables, nftables)
//	                                   └────▶ health check node ports, metrics, stale flows
//
// How to use it: New with a Config, then Run. There is no waiting for more changes by default: an event is written at
// once, and what comes while a write is under way goes into the next one. When the API server is away, the
// rules stay as they are; they stay, too, when the agent ends.
//
// What was traded: a write that failed is not thought about. The next thing is a Sync, which looks at what the kernel
// holds.
package nodeagent
