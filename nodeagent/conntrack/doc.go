// Package conntrack removes the kernel's entries of UDP and SCTP flows whose backend is gone. Packets of a known flow never see
// the rules again, so a client that keeps sending would be sent to the dead address for ever.
//
//	t, err := conntrack.Open()                  // in the network namespace of the thread
//	removed, err := t.Remove(change.Ports)      // after the rules have changed, without delaying them
//
// A flow is stale if it asked for a frontend that a changed port has or had, was translated by this node, and is answered by
// none of the frontend's current backends and living endpoints. That includes the flows of a Service that is gone or has no
// endpoint left. A flow that was not translated, because it began before there were rules, is also stale: at a Service's own
// address, and at a node port of one of the node's addresses. Others are left alone, including those to terminating endpoints
// that still serve.
//
// Flows of TCP end when their backend does. For an edge that knows of a backend that it does not, as it was cut off, there is End.
//
// What was traded: the kernel filters by protocol, port and an IPv4 address (Linux 5.8 and later; older ones send everything,
// and all filtering is done here), but it walks its whole table for each query. So there is one query per changed frontend up
// to a number, and a single one above it.
package conntrack
