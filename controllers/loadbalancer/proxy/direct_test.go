package proxy

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"syscall"
	"testing"
	"time"
)

// directPair returns both ends of a connection, of which one is direct.
func directPair(t *testing.T) (direct *directConn, other *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	one, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	two, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = one.Close(); _ = two.Close() })
	d := newDirectConn(one.(*net.TCPConn))
	return &d, two.(*net.TCPConn)
}

// TestDirectConnectionsAreConnections sends much in random pieces both ways at once, more than buffers hold, so that both sides have to wait.
func TestDirectConnectionsAreConnections(t *testing.T) {
	direct, other := directPair(t)
	there, back := make([]byte, 8<<20), make([]byte, 8<<20)
	for i := range there {
		there[i], back[i] = byte(rand.Int()), byte(rand.Int())
	}
	send := func(c *net.TCPConn, w io.Writer, text []byte) {
		for len(text) > 0 {
			n := min(len(text), 1+rand.IntN(1<<20))
			if sent, err := w.Write(text[:n]); sent != n || err != nil {
				t.Errorf("%d of %d bytes written, %v", sent, n, err)
				return
			}
			text = text[n:]
		}
		_ = c.CloseWrite()
	}
	go send(direct.TCPConn, direct, there)
	go send(other, other, back)
	got := make(chan []byte)
	go func() { text, _ := io.ReadAll(other); got <- text }()
	text, err := io.ReadAll(struct{ io.Reader }{direct}) // its own ReadFrom is net's
	if err != nil || !bytes.Equal(text, back) {
		t.Errorf("%d bytes read, %v, want the %d that were sent", len(text), err, len(back))
	}
	if text := <-got; !bytes.Equal(text, there) {
		t.Errorf("%d bytes came, want the %d that were written", len(text), len(there))
	}
}

func TestDirectConnectionsEndAsOthers(t *testing.T) {
	direct, other := directPair(t)
	buffer := make([]byte, 16)
	_ = direct.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if n, err := direct.Read(buffer); n != 0 || !isTimeout(err) {
		t.Errorf("a read beyond its deadline: %d, %v", n, err)
	}
	much := make([]byte, 64<<20)
	_ = direct.SetWriteDeadline(time.Now().Add(time.Second))
	if n, err := direct.Write(much); n == 0 || n == len(much) || !isTimeout(err) {
		t.Errorf("a write that nobody reads: %d, %v", n, err)
	}
	_ = direct.SetDeadline(time.Time{})
	_ = other.SetLinger(0)
	_ = other.Close()
	if n, err := direct.Read(buffer); n != 0 || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a read of what the other side has reset: %d, %v", n, err)
	}
	n, err := direct.Write(buffer)
	if _, want := direct.TCPConn.Write(buffer); n != 0 || !errors.Is(err, syscall.EPIPE) || err.Error() != want.Error() {
		t.Errorf("a write to what is reset: %d, %v, want %v", n, err, want)
	}
	direct, _ = directPair(t)
	time.AfterFunc(20*time.Millisecond, func() { _ = direct.Close() })
	if n, err := direct.Read(buffer); n != 0 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("a read of what is closed meanwhile: %d, %v", n, err)
	}
	if n, err := direct.Write(buffer); n != 0 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("a write to what is closed: %d, %v", n, err)
	}
}
