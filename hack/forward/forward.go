// Package forward leads TCP connections from one network to another, for networks made of namespaces: the listener
// belongs to the namespace of the thread that made it, what is dialled to that of the program.
package forward

import (
	"io"
	"net"
	"time"
)

// Serve joins each connection that l accepts with one to address, until l is closed.
func Serve(l net.Listener, address string) {
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		go Conn(in, address)
	}
}

// Conn joins a connection with one to address. One that cannot be made within a second closes it.
func Conn(in net.Conn, address string) {
	out, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		in.Close()
		return
	}
	Join(in, out)
}

// Join carries bytes both ways until either side ends, and closes both.
func Join(a, b net.Conn) {
	defer a.Close()
	defer b.Close()
	go func() { _, _ = io.Copy(a, b); a.Close(); b.Close() }() // either end may close
	_, _ = io.Copy(b, a)
}
