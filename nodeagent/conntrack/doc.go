// Package conntrack takes away what the kernel remembers of UDP and SCTP flows whose backend is gone. Packets of a known
// flow never see the rules again, so a client that keeps on sending would be sent to the dead address for ever.
//
//	t, err := conntrack.Open()                  // in the network namespace of the thread
//	removed, err := t.Remove(change.Ports)      // after the rules have changed, off their way
//
// A flow is stale when it asked for a frontend that a changed port has or had, was sent on by this node, and is answered by
// none of the backends and living endpoints that the frontend has now: so the flows of a Service that is gone or has no
// endpoint left, too. It is stale also if it was not sent on, because it began before there were rules: at a Service's own
// address, and at a node port of one of the node's addresses. Others are left alone, those to endpoints that end but still
// serve among them.
//
// What was traded: the kernel compares protocol, port and an IPv4 address (Linux 5.8 and later; older ones send everything, and
// all is compared here), but it walks its whole table for each question. So there is one question for each changed frontend up to
// a number, and one for all above it.
package conntrack
