// Package ruleset decides where a node sends the packets of Services: from Services, EndpointSlices and the node to Ports, each
// with its addresses and the backends behind them. It is pure: values in, values and reasons out.
//
// How to use it: New, then SetService and SetSlice for what the API server sends, then Update with the keys that they touched.
// Update returns what a Writer has to change, complete and normalized: no address is in two Ports at a time. Trace follows one
// packet through the same values, step by step.
//
// What was traded: a Port holds the backends that are used now, not those that would be used next. When an endpoint goes, the
// Port is rebuilt from its Service's slices. The cost grows with that Service's endpoints, and with nothing of the others.
package ruleset
