package proxy

import (
	"bufio"
	"bytes"
	"net"
	"net/netip"
	"testing"
)

// BenchmarkKeptAlive sends requests one after the other over one connection. What client and cluster allocate does not count: they allocate nothing.
func BenchmarkKeptAlive(b *testing.B) {
	c := &cluster{name: "east", addr: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), freePort(b))}
	listener, err := net.Listen("tcp", c.addr.String())
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	go answerAll(listener, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nDate: Fri, 27 Nov 2026 12:00:00 GMT\r\nContent-Length: 1024\r\n\r\n"+string(bytes.Repeat([]byte{'x'}, 1024)))
	bed := newBed(b, Options{}, ListenOptions{}, serviceOf(c.addr.Port(), ""), c)
	client, err := net.Dial("tcp", bed.url)
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	request, answer := []byte("GET /some/path?with=query HTTP/1.1\r\nHost: www.test\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n"), bufio.NewReader(client)
	size := 0
	b.ReportAllocs()
	for b.Loop() {
		if _, err := client.Write(request); err != nil {
			b.Fatal(err)
		}
		if size == 0 {
			size = sizeOf(b, answer)
		} else if _, err := answer.Discard(size); err != nil {
			b.Fatal(err)
		}
	}
}

// sizeOf reads an answer of 1024 bytes behind its head, and returns how many there were in all.
func sizeOf(b *testing.B, r *bufio.Reader) (size int) {
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			b.Fatal(err)
		}
		if size += len(line); line == "\r\n" {
			_, err = r.Discard(1024)
			if err != nil {
				b.Fatal(err)
			}
			return size + 1024
		}
	}
}

// answerAll gives each request, which comes in one piece, this answer.
func answerAll(l net.Listener, answer string) {
	text := []byte(answer)
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			head := make([]byte, 4096)
			for {
				if _, err := c.Read(head); err != nil {
					return
				}
				if _, err := c.Write(text); err != nil {
					return
				}
			}
		}()
	}
}
