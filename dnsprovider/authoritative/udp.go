package authoritative

import (
	"context"
	"errors"
	"net"
	"runtime"
	"time"
)

// SpareProcessor makes sure that Go's scheduler has a processor (GOMAXPROCS) beside those of the UDP sockets, which
// keep theirs as long as packets come without a pause. A program that does more than UDP calls it once.
func (s *Server) SpareProcessor() {
	if sockets := len(s.sockets.udp); runtime.GOMAXPROCS(0) <= sockets {
		runtime.GOMAXPROCS(sockets + 1)
	}
}

// serveUDP answers the packets of one socket, a batch at a time, until it is closed.
func (a *answering) serveUDP(ctx context.Context, socket *net.UDPConn, counters *counters) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return // closed already
	}
	packets, r := newBatch(raw), &responder{service: &a.service, counters: counters, special: a.signedPacket}
	for {
		n, err := packets.receive()
		if err != nil {
			if waitAfterError(ctx, err) {
				continue
			}
			return
		}
		current, received := a.zone.current.Load(), time.Now()
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
