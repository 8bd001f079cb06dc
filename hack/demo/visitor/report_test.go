package main

import (
	"context"
	"net"
	"net/url"
	"syscall"
	"testing"
	"time"
)

func TestReport(t *testing.T) {
	var r report
	if r.current() != nil {
		t.Error("a phase before the first has begun")
	}
	start := time.Unix(1000, 0)
	r.begin("both are up", start)
	first := r.current()
	r.add(first, start, "east-a", nil)
	r.begin("east-a dies", start.Add(500*time.Millisecond))
	r.add(r.current(), start.Add(2500*time.Millisecond), "", &net.OpError{Op: "dial", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}, Err: syscall.ECONNREFUSED})
	r.add(r.current(), start.Add(1*time.Second), "", &url.Error{Err: context.DeadlineExceeded})
	r.add(r.current(), start.Add(3*time.Second), "west-a", nil)
	r.add(first, start, "west-a", nil) // what takes long counts where it began
	want := `                                     requests   east-a   west-a   failed
  both are up                               2        1        1        0
  east-a dies                               3        0        1        2, begun 0.5 to 2.0 s after that, none answered for 2.0 s
    192.0.2.1:80: connection refused        1
    no answer in time                       1
`
	if got := r.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
