package forward

import (
	"net"
	"sync/atomic"
)

// A SilentProxy carries TCP connections to an address, and answers for both sides by itself, keep-alives too. Where it drops what one side sends to the
// other, connections stay open, and can be made, as if nothing were. A connection that has lost something that way never carries that way again, and
// neither end receives an error.
type SilentProxy struct {
	address      string
	there, back  atomic.Bool // is dropped
	net.Listener             // where it takes connections
}

// NewSilentProxy returns a proxy to address that takes connections on l until that is closed, and drops nothing yet.
func NewSilentProxy(l net.Listener, address string) *SilentProxy {
	p := &SilentProxy{address: address, Listener: l}
	go p.serve()
	return p
}

// Drop drops from now on what goes there, to the address, what comes back from it, both, or nothing.
func (p *SilentProxy) Drop(there, back bool) {
	p.there.Store(there)
	p.back.Store(back)
}

func (p *SilentProxy) serve() {
	for {
		in, err := p.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.address)
		if err != nil {
			in.Close()
			continue
		}
		go carry(out, in, &p.there)
		go carry(in, out, &p.back)
	}
}

// carry passes on what comes, and that it ends, unless it is to be dropped.
func carry(to, from net.Conn, drop *atomic.Bool) {
	lost, buffer := false, make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if lost = lost || drop.Load(); !lost && n > 0 {
			_, _ = to.Write(buffer[:n]) // a side that has gone is found by reading
		}
		if err != nil {
			if !lost {
				to.Close() // the other direction finds it
			}
			return
		}
	}
}
