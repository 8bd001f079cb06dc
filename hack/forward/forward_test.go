package forward

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func dial(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

func TestServe(t *testing.T) {
	outside, inside := listen(t), listen(t)
	go Serve(inside, outside.Addr().String())
	client := dial(t, inside)
	server, err := outside.Accept()
	if err != nil {
		t.Fatal(err)
	}
	for name, ends := range map[string][2]net.Conn{"question": {client, server}, "answer": {server, client}} {
		go func() { _, _ = io.WriteString(ends[0], name) }()
		got := make([]byte, len(name))
		if _, err := io.ReadFull(ends[1], got); err != nil || string(got) != name {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	server.Close()
	if n, err := io.Copy(io.Discard, client); n != 0 || err != nil {
		t.Errorf("when the server closes, the client gets %d bytes, %v", n, err)
	}
	outside.Close()
	if n, err := io.Copy(io.Discard, dial(t, inside)); n != 0 || err != nil {
		t.Errorf("where nobody listens, the client gets %d bytes, %v", n, err)
	}
}

// A SilentProxy reports to neither side what it drops; it carries connections that are made afterwards.
func TestSilentProxy(t *testing.T) {
	outside := listen(t)
	p := NewSilentProxy(listen(t), outside.Addr().String())
	connect := func() (client, server net.Conn) {
		client = dial(t, p)
		server, err := outside.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { server.Close() })
		return client, server
	}
	passes := func(from, to net.Conn) bool {
		got := make([]byte, 4)
		_ = to.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		_, _ = io.WriteString(from, "word")
		_, err := io.ReadFull(to, got)
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a side receives an error: %v", err)
		}
		return err == nil
	}
	client, server := connect()
	for _, drop := range []struct{ there, back bool }{{false, false}, {true, false}, {false, false}, {true, true}} {
		p.Drop(drop.there, drop.back)
		if got := passes(client, server); got != !drop.there {
			t.Errorf("%+v: what goes there passes: %t", drop, got)
		}
		if got := passes(server, client); got != !drop.back {
			t.Errorf("%+v: what comes back passes: %t", drop, got)
		}
		if drop.there {
			p.Drop(false, false)
			if passes(client, server) {
				t.Error("a connection that lost something goes on")
			}
			client, server = connect()
		}
	}
	client.Close()
	if _, err := server.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("when the client closes, the server gets %v", err)
	}
}
