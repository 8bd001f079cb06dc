// Package ruleset says where a node sends the packets of Services: from Services, EndpointSlices and the
// node to Ports, each with the addresses that it answers at and the backends behind them. It is pure: values
// in, values and reasons out.
//
// How to use it: New, then SetService and SetSlice for what the API server says, then Update with the keys that
// they touched. What Update returns is what a kernel edge has to change, whole and normalized: no address is in
// two Ports at a time. Trace follows one packet through the same values, step by step.
//
// What was traded: a Port holds the backends that are used now, not the ones that would be used next. When an
// endpoint goes, the Port is built anew from its Service's slices, which costs as much as that one Service has
// endpoints, and nothing of the others.
package ruleset
