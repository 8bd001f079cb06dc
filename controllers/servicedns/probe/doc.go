// Package probe asks load balancers whether they answer, over TCP, HTTP and HTTPS.
//
//	prober := probe.New(probe.Options{Failing: …})   // as it was written down before
//	prober.Want(ctx, targets)                        // from now on these, until ctx ends
//	<-prober.Changed(); prober.Failing()
//
// Each target has a goroutine that asks it once an interval, give or take a tenth; the first time is at random within
// the first interval, so that thousands of them do not come in bursts. At most 256 are asked at once, and 32 of one
// namespace. No address is dialed where no load balancer can be, whatever a host name leads to. A target counts as
// failing after some failures in a row, and as answering again after some successes.
//
// What is our own fault, such as a lack of sockets or of a route, or a host name that could not be looked up, is no
// failure of the target: it counts for nothing. A target that is new counts as answering.
//
// What was traded: a connection for each question. One that is kept open would be faster, and would not see that no new
// ones are accepted.
package probe
