package forward

import (
	"io"
	"net"
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
