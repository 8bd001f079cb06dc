// Package nettest builds a small network to test rules of a node with real packets: two nodes, pods on them, and a client
// outside, each in its own network namespace, IPv4 and IPv6.
//
//	rig := nettest.New(t)                       // skips if the test may not make namespaces
//	web := rig.Nodes[0].Pod(t, "web-0")         // 10.180.0.2, fd00:10:180::2
//	web.ServeHTTP(t, 8080)                      // tells its name and the client's address
//	rig.Nodes[0].Do(func() error { … })         // runs with the node's network, for example to write rules
//	answer, err := rig.Outside.Get(netip.MustParseAddrPort("192.0.2.10:30080"))
//
//	              pods 10.180.0.0/24            pods 10.180.1.0/24
//	                  │ veth each                   │ veth each
//	              node-0 192.0.2.10             node-1 192.0.2.11
//	                  └───────────── wire ──────────┘
//	                                  │
//	                          outside 192.0.2.200
//
// Nodes route each other's pod ranges. Outside knows only the nodes; Route adds what else it should reach through one of them.
// Nothing has a name on the machine: everything is gone when the test ends, even if it is killed.
//
// What was traded: servers and clients are goroutines of the test, not processes, so a rig is up within 0.1 s. What they bind
// and connect is in the namespace all the same, because a socket belongs to where it was made.
package nettest
