package plan

// Spread is how what comes to a port of a Service is divided now: for an edge in the kernel, which divides it in place of the proxy.
type Spread struct {
	Listener
	// ProxyProtocol: connections begin with a header of PROXY protocol v2.
	ProxyProtocol bool
	Parts         []SpreadPart
}

// SpreadPart is a target with its part; as in Part.
type SpreadPart struct {
	Target
	Share     float64
	Out, Lost bool
}
