// Package http1 serves HTTP/1.0 and HTTP/1.1 to clients that may be hostile, for a proxy.
//
// It reads a head once and strictly: what two servers could read in two ways is refused, and the connection ends with it. net/http tolerates more, hides from
// a handler which headers of framing a request had, and starts a goroutine for each request that waits for the client to leave. Here a client is watched only
// once its request has taken a while.
//
// Handlers are those of net/http. What is not here goes to net/http's own server: HTTP/2.
package http1
