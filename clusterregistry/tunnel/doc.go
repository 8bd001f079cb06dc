// Package tunnel carries requests to the API of a member that the federation cannot connect to: one behind NAT, or in a network that lets nobody in.
//
// An Agent in the member connects out to each process of the federation and keeps some connections ready. The Hub of the process takes one whenever
// something dials that member, and uses it as any other connection to an API server. The agent forwards what comes to its own API server with its own
// credential: the federation has none of that member.
//
//	Agent ── POST clusters/NAME/connect, Upgrade ──▶ Hub.Park
//	Agent ◀── HTTP/1.1 or HTTP/2 of the registry ─── Hub.Dial
//
// A connection serves whoever took it until either side ends it; the agent replaces it at once. There is no multiplexing but that of HTTP/2.
package tunnel
