// Package proxy is the data path of the federation's load balancers: it takes requests, asks a table of package plan where they go, and
// sends them to a cluster. It gets tables, pools and certificates as values and swaps them in the process; nothing is reloaded.
//
// In front are package http1 for HTTP/1 and net/http for HTTP/2, by TLS with SNI, with bounds on headers, connections and slow clients, and a
// stricter reading of requests (check.go). Behind is an HTTP/1.1 client of its own (upstream.go, head.go), which costs less than
// http.Transport; HTTP/2 and TLS to clusters go by that. Sockets are read and written in direct.go.
//
// What is known of a target (target.go, health.go):
//
//	checks    each second while it is used, each 10 s otherwise, more often while requests wait in vain; two failures in a row
//	          make it fail, two answers end that. Any answer will do, unless the Service's settings ask for more.
//	ejection  three requests in a row that could not be delivered, or five gateway errors; for 10 s, then longer.
//	silence   a server of unknown protocol that ends connections no more when checks do (silence.go); it counts as ejected.
//	cold      what is back gets its share in 30 s.
//
// A request that waits for a target that begins to fail is sent to another one at once. A request is tried again, on another cluster,
// if it never left; and once if no byte of an answer came and it is a GET, HEAD or OPTIONS without a body. Retries are at most 20 % of
// the requests of a pool, beside a few that are always allowed.
//
// Connections to ports of Services (streams.go) are copied both ways by splice, with bounds on their number and on silence. One that no cluster has taken yet
// is tried at others. So are TLS connections to hosts whose Ingress has them passed on (passthrough.go), as long as no byte has come back. Those to a target that begins to fail are reset while another one is used.
package proxy
