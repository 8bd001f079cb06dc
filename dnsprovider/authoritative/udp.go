package authoritative

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync"
	"time"

	"federation/dnsprovider/contain"
)

// startUDP answers packets in one goroutine per socket: memory is bounded, and the kernel drops the excess.
func (s *Server) startUDP(ctx context.Context, running *sync.WaitGroup) {
	for i, socket := range s.udp {
		running.Go(func() { contain.Keep(ctx, "udp", func() { s.serveUDP(ctx, socket, s.counters[i]) }) })
	}
}

// SpareProcessor makes sure that Go's scheduler has a processor (GOMAXPROCS) beside those of the UDP sockets, which
// keep theirs as long as packets come without a pause. A program that does more than UDP calls it once.
func (s *Server) SpareProcessor() {
	if sockets := len(s.udp); runtime.GOMAXPROCS(0) <= sockets {
		runtime.GOMAXPROCS(sockets + 1)
	}
}

func (s *Server) serveUDP(ctx context.Context, socket *net.UDPConn, counters *counters) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return // closed already
	}
	packets, r := newBatch(raw), &responder{service: &s.service, counters: counters, special: s.signedPacket}
	for {
		n, err := packets.receive()
		if err != nil {
			if waitAfterError(ctx, err) {
				continue
			}
			return
		}
		current, received := s.current.Load(), time.Now()
		r.second = uint32(received.Unix())
		for i := range n {
			r.touched += current.names.prefetch(packets.message(i))
		}
		for i := range n {
			if reply := r.guarded(current, packets.message(i), origin{packets.senderOf(i), true}); reply != nil {
				packets.queue(i, reply)
			}
		}
		if err := packets.send(); err != nil && !waitAfterError(ctx, err) {
			return
		}
		counters.observe(time.Since(received), n)
	}
}

// pause is the delay after a temporary error of a socket, such as no file left.
const pause = 10 * time.Millisecond

// waitAfterError reports whether to continue after an error of a socket, after a short delay.
func waitAfterError(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
		return false
	}
	time.Sleep(pause)
	return true
}
