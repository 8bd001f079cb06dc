package authoritative

import (
	"net/netip"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// batchSize is the maximum of packets per system call.
	batchSize = 64
	// packetSize is what we read of a packet: no query that we answer over UDP is longer.
	packetSize = 2048
	// controlSize has room for the address to which a packet came.
	controlSize = 64
)

// batch receives packets and sends the answers, many with one system call, in memory that it has
// from the start.
type batch struct {
	conn    syscall.RawConn
	in, out [batchSize]mmsghdr
	packets [batchSize]packet
	sending [batchSize]unix.Iovec
	// received, queued and sent count what is in in and out.
	received, queued, sent int
	err                    error
	// receive and send are bound once, because binding them each time allocates memory.
	receiveFunc, sendFunc func(fd uintptr) bool
}

// mmsghdr is a packet for recvmmsg(2) and sendmmsg(2).
type mmsghdr struct {
	header unix.Msghdr
	length uint32
}

// packet is where a packet and what is known about it are kept.
type packet struct {
	data    [packetSize]byte
	control [controlSize]byte
	from    unix.RawSockaddrInet6
	vector  unix.Iovec
}

func newBatch(conn syscall.RawConn) *batch {
	b := &batch{conn: conn}
	b.receiveFunc, b.sendFunc = b.tryReceive, b.trySend
	for i := range b.in {
		p, h := &b.packets[i], &b.in[i].header
		p.vector.Base = &p.data[0]
		p.vector.SetLen(packetSize)
		h.Name, h.Iov, h.Control = (*byte)(unsafe.Pointer(&p.from)), &p.vector, &p.control[0]
		h.SetIovlen(1)
	}
	b.received = batchSize
	return b
}

// receive waits for at least one packet. It returns how many there are.
func (b *batch) receive() (int, error) {
	for i := range b.received {
		b.in[i].header.Namelen = unix.SizeofSockaddrInet6
		b.in[i].header.SetControllen(controlSize)
	}
	b.queued, b.sent = 0, 0
	if err := b.conn.Read(b.receiveFunc); err != nil {
		return 0, err
	}
	return b.received, b.err
}

func (b *batch) tryReceive(fd uintptr) bool {
	n, errno := callMmsg(unix.SYS_RECVMMSG, fd, b.in[:])
	if errno == unix.EAGAIN {
		return false
	}
	if b.received, b.err = n, nil; errno != 0 {
		b.received, b.err = 0, os.NewSyscallError("recvmmsg", errno)
	}
	return true
}

// callMmsg calls recvmmsg or sendmmsg, which do not block here. It does not tell Go's scheduler, which would take the
// processor from the goroutine after some 20 µs and give it back, time and again (ADR 51).
func callMmsg(call, fd uintptr, packets []mmsghdr) (n int, errno unix.Errno) {
	for {
		r, _, errno := unix.RawSyscall6(call, fd, uintptr(unsafe.Pointer(&packets[0])), uintptr(len(packets)), unix.MSG_DONTWAIT, 0, 0)
		if errno != unix.EINTR {
			return int(r), errno
		}
	}
}

// message returns the i-th packet that was received; its capacity has room for the answer.
func (b *batch) message(i int) []byte { return b.packets[i].data[:b.in[i].length] }

// senderOf returns the sender of the i-th packet.
func (b *batch) senderOf(i int) netip.Addr {
	p := &b.packets[i]
	if p.from.Family == unix.AF_INET {
		return netip.AddrFrom4((*unix.RawSockaddrInet4)(unsafe.Pointer(&p.from)).Addr)
	}
	return netip.AddrFrom16(p.from.Addr).Unmap()
}

// queue puts the answer to the i-th packet among those that send sends. It goes from the address to
// which the packet came.
func (b *batch) queue(i int, reply []byte) {
	h := &b.out[b.queued].header
	*h = b.in[i].header
	forgetInterface(b.packets[i].control[:h.Controllen])
	vector := &b.sending[b.queued]
	vector.Base = &reply[0]
	vector.SetLen(len(reply))
	h.Iov, h.Flags = vector, 0
	b.queued++
}

// send sends the queue. A client that cannot be reached asks again, or not.
func (b *batch) send() error {
	for b.sent < b.queued {
		if err := b.conn.Write(b.sendFunc); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) trySend(fd uintptr) bool {
	n, errno := callMmsg(unix.SYS_SENDMMSG, fd, b.out[b.sent:b.queued])
	switch errno {
	case 0:
		b.sent += n
	case unix.EAGAIN:
		return false
	default:
		b.sent++ // that is the packet which fails
	}
	return true
}

// askDestination makes a socket that is bound to all addresses tell to which one a packet came.
func askDestination(fd int) error {
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return os.NewSyscallError("getsockopt SO_DOMAIN", err)
	}
	if domain == unix.AF_INET {
		return os.NewSyscallError("setsockopt IP_PKTINFO", unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1))
	}
	return os.NewSyscallError("setsockopt IPV6_RECVPKTINFO", unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1))
}

// forgetInterface lets the routing table choose the way back, as it would for any packet, but for
// link-local addresses, which mean nothing without the interface.
func forgetInterface(control []byte) {
	if len(control) < unix.SizeofCmsghdr {
		return
	}
	h, data := (*unix.Cmsghdr)(unsafe.Pointer(&control[0])), control[unix.CmsgLen(0):]
	switch {
	case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
		(*unix.Inet4Pktinfo)(unsafe.Pointer(&data[0])).Ifindex = 0
	case h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_PKTINFO && len(data) >= unix.SizeofInet6Pktinfo:
		if info := (*unix.Inet6Pktinfo)(unsafe.Pointer(&data[0])); !netip.AddrFrom16(info.Addr).IsLinkLocalUnicast() {
			info.Ifindex = 0
		}
	}
}
