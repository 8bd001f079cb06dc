package cluster

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// What a member answers to a request for an upgrade is bounded in bytes and time; what comes after its header is not.
func TestHeadsAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		want   error
	}{
		"a header and much after it": {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n" + strings.Repeat("a", 2*maxHead), nil},
		"a header without an end":    {"HTTP/1.1 101 Switching Protocols\r\nA: " + strings.Repeat("a", 2*maxHead), errHead},
	} {
		near, far := net.Pipe()
		go func() {
			for i := 0; i < len(c.answer); i += 3 { // its end comes in parts
				if _, err := io.WriteString(far, c.answer[i:min(len(c.answer), i+3)]); err != nil {
					return
				}
			}
			_ = far.Close()
		}()
		got, err := io.ReadAll(boundHead(near))
		if !errors.Is(err, c.want) || err == nil && len(got) != len(c.answer) || len(got) > maxHead && c.want != nil {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		_ = near.Close()
	}
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		conn, began := boundHead(near), time.Now()
		if _, err := conn.Read(make([]byte, 1)); err == nil || time.Since(began) != headWithin {
			t.Errorf("silence for %s: %v", time.Since(began), err)
		}
	})
}
