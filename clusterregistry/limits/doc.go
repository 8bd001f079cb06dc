// Package limits bounds what one member can make this process read and hold, whatever it sends.
//
//	meter := limits.New(limits.Limits{}, func(reason string) { … }) // one for each member
//	transport := meter.Transport(transport)                         // counts what is read
//	limits.Hold(meter, object, size)                                // counts what is kept of it
//
// Bytes are counted after decompression, and what becomes much more when it is decoded counts for more: see package weight. A
// member that goes over a limit is cut off at that byte: what is being read fails with an *ExceededError, and the function that
// New was given hears of it, once.
//
// What was traded: an object counts until the garbage collector has freed it, so a member that changes
// quickly counts for more than what caches hold of it at the moment. That is the memory it costs.
package limits
