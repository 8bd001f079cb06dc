package kernel

import "net"

// Claim is the right to write the rules, which one process of a network namespace has at a time. It ends with the process.
type Claim struct {
	name string
	held net.Listener
}

// NewClaim makes one under a name, which nobody has yet. A socket of that name is the claim: in the abstract namespace, which is that of the network.
func NewClaim(name string) *Claim { return &Claim{name: "@" + name} }

// Take takes it, unless another process has it.
func (c *Claim) Take() bool {
	if c.held == nil {
		c.held, _ = net.Listen("unix", c.name) // an error says that somebody has it
	}
	return c.held != nil
}

// Release lets another process take it.
func (c *Claim) Release() {
	if c.held != nil {
		_ = c.held.Close() // nothing is left to do
		c.held = nil
	}
}
