// Package probe checks the health of load balancers over TCP, HTTP and HTTPS.
//
//	prober := probe.New(probe.Options{Failing: …})   // the last known failures
//	prober.Want(ctx, targets)                        // from now on these, until ctx ends
//	<-prober.Changed(); prober.Failing()
//
// Each target has a goroutine that checks it once an interval, give or take a tenth. The first check is at a random time in
// the first interval, so that thousands do not come in bursts. At most 256 checks run at once, and 32 of one namespace. It
// never dials an address that no load balancer can have, whatever a host name resolves to. A target counts as failing after
// some failures in a row, and as healthy again after some successes.
//
// Local errors, such as a lack of sockets or of a route, or a failed lookup, do not count as failures. A new target counts as
// healthy.
//
// What was traded: each check makes a connection. An open one would be faster, but would not notice that no new ones are
// accepted.
package probe
