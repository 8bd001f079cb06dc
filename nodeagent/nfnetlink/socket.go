package nfnetlink

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrInterrupted ends a dump when somebody else changed what was being dumped: try again.
var ErrInterrupted = errors.New("changed while it was read")

// Socket is a netlink socket of netfilter. It is for one goroutine at a time. Keep it open: to close any socket of
// netfilter, the kernel waits until what transactions removed is freed, which is some ten milliseconds after any
// transaction.
type Socket struct {
	fd   int
	port uint32
	seq  uint32
	buf  []byte
}

// bufferBytes must hold the largest transaction, and the kernel's answers to it; it is a limit, not taken up front.
const bufferBytes = 256 << 20

// Dial opens a socket in the network namespace of the thread. It needs CAP_NET_ADMIN.
func Dial() (*Socket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("opening a netfilter socket: %w", err)
	}
	s := &Socket{fd: fd, buf: make([]byte, 1<<17)}
	if err := s.prepare(); err != nil {
		s.Close()
		return nil, fmt.Errorf("preparing a netfilter socket: %w", err)
	}
	return s, nil
}

func (s *Socket) prepare() error {
	if err := unix.Bind(s.fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	name, err := unix.Getsockname(s.fd)
	if err != nil {
		return err
	}
	s.port = name.(*unix.SockaddrNetlink).Pid
	for _, option := range []int{unix.SO_SNDBUFFORCE, unix.SO_RCVBUFFORCE} {
		if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, option, bufferBytes); err != nil {
			return fmt.Errorf("raising its buffers, which takes CAP_NET_ADMIN: %w", err)
		}
	}
	return unix.SetsockoptInt(s.fd, unix.SOL_NETLINK, unix.NETLINK_CAP_ACK, 1) // errors need not bear the message
}

// Port returns the socket's netlink address, which its events have.
func (s *Socket) Port() uint32 { return s.port }

// Close frees the socket.
func (s *Socket) Close() { _ = unix.Close(s.fd) }

// MessageError is the kernel's error on one message of a batch.
type MessageError struct {
	Index int // of the message, from 0
	Errno syscall.Errno
}

func (e *MessageError) Error() string { return fmt.Sprintf("message %d: %v", e.Index, e.Errno) }

// Unwrap gives the errno.
func (e *MessageError) Unwrap() error { return e.Errno }

// Commit sends a batch as one transaction of nftables: all of it or nothing. The error is that of the first message that
// failed, a *MessageError. An empty batch is not sent.
func (s *Socket) Commit(b *Batch) error {
	if b.n == 0 {
		return nil
	}
	var all Batch
	all.begin(unix.NFNL_MSG_BATCH_BEGIN, 0, unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES)
	all.buf, all.last, all.n = append(all.buf, b.buf...), len(all.buf)+b.last, all.n+b.n
	binary.NativeEndian.PutUint16(all.buf[all.last+6:], binary.NativeEndian.Uint16(all.buf[all.last+6:])|unix.NLM_F_ACK)
	all.begin(unix.NFNL_MSG_BATCH_END, 0, unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES)
	first := s.number(&all)
	if err := s.send(&all); err != nil {
		return err
	}
	return s.acknowledged(first+1, first+uint32(b.n))
}

// Do sends messages that are no transaction, one after the other, and returns an error for each that failed.
func (s *Socket) Do(b *Batch) []error {
	var errs []error
	for at := 0; at < len(b.buf); {
		length := int(binary.NativeEndian.Uint32(b.buf[at:]))
		one := Batch{buf: b.buf[at : at+length], n: 1}
		binary.NativeEndian.PutUint16(one.buf[6:], binary.NativeEndian.Uint16(one.buf[6:])|unix.NLM_F_ACK)
		seq := s.number(&one)
		err := s.send(&one)
		if err == nil {
			err = s.acknowledged(seq, seq)
		}
		if err != nil {
			errs = append(errs, err)
		}
		at += length
	}
	return errs
}

// Dump sends the one message of a batch as a question, and calls each with the family and attributes of every answer.
func (s *Socket) Dump(b *Batch, each func(family uint8, attributes []byte)) error {
	binary.NativeEndian.PutUint16(b.buf[6:], binary.NativeEndian.Uint16(b.buf[6:])|unix.NLM_F_DUMP)
	seq := s.number(b)
	if err := s.send(b); err != nil {
		return err
	}
	interrupted := false
	for {
		done, err := s.receive(func(m message) (bool, error) {
			if m.seq != seq {
				return false, nil
			}
			interrupted = interrupted || m.flags&unix.NLM_F_DUMP_INTR != 0
			if m.kind == unix.NLMSG_DONE || m.kind == unix.NLMSG_ERROR {
				return true, m.err()
			}
			if len(m.data) >= 4 {
				each(m.data[0], m.data[4:])
			}
			return false, nil
		})
		if err == nil && done && interrupted {
			return ErrInterrupted
		}
		if err != nil || done {
			return err
		}
	}
}

// Generation returns the number that nftables counts up with each transaction of anybody in the network namespace.
func (s *Socket) Generation() (n uint32, err error) {
	var b Batch
	b.Begin(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETGEN, unix.NLM_F_ACK, unix.AF_UNSPEC) // the acknowledgement ends the answer
	err = s.Dump(&b, func(_ uint8, attributes []byte) {
		if id := Attribute(attributes, unix.NFTA_GEN_ID); len(id) == 4 {
			n = binary.BigEndian.Uint32(id)
		}
	})
	return n, err
}

// number gives the messages their sequence numbers, and returns the first.
func (s *Socket) number(b *Batch) (first uint32) {
	first = s.seq + 1
	for at := 0; at < len(b.buf); at += int(binary.NativeEndian.Uint32(b.buf[at:])) {
		s.seq++
		binary.NativeEndian.PutUint32(b.buf[at+8:], s.seq)
	}
	return first
}

func (s *Socket) send(b *Batch) error {
	if err := unix.Sendto(s.fd, b.buf, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("sending %d messages of %d bytes: %w", b.n, len(b.buf), err)
	}
	return nil
}

// acknowledged reads answers up to that to the message last, and returns the first error.
func (s *Socket) acknowledged(first, last uint32) error {
	var failed error
	for {
		done, err := s.receive(func(m message) (bool, error) {
			if m.kind != unix.NLMSG_ERROR || m.seq-first > last-first && m.seq != first-1 {
				return false, nil // of an earlier question
			}
			if errno := m.err(); errno != nil && failed == nil {
				failed = &MessageError{int(m.seq - first), errno.(syscall.Errno)}
			}
			return m.seq == last || m.seq == first-1, nil // the kernel answers to the beginning when it refuses all
		})
		if err != nil {
			return err
		}
		if done {
			return failed
		}
	}
}

type message struct {
	kind, flags uint16
	seq         uint32
	data        []byte
}

// err returns the error that a message tells of; nil for an acknowledgement.
func (m message) err() error {
	if len(m.data) < 4 {
		return nil
	}
	if code := int32(binary.NativeEndian.Uint32(m.data)); code < 0 && (m.kind == unix.NLMSG_ERROR || m.kind == unix.NLMSG_DONE) {
		return syscall.Errno(-code)
	}
	return nil
}

// receive reads one datagram and calls f with its messages until that is done or fails.
func (s *Socket) receive(f func(message) (done bool, err error)) (bool, error) {
	n, from, err := unix.Recvfrom(s.fd, s.buf, 0)
	if errors.Is(err, unix.EINTR) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading from the kernel: %w", err)
	}
	if sender, ok := from.(*unix.SockaddrNetlink); !ok || sender.Pid != 0 {
		return false, nil // another process of this network can send, too
	}
	done := false
	for data := s.buf[:n]; len(data) >= unix.SizeofNlMsghdr; {
		length := int(binary.NativeEndian.Uint32(data))
		if length < unix.SizeofNlMsghdr || length > len(data) {
			return false, fmt.Errorf("the kernel's message says that it has %d bytes, and has %d", length, len(data))
		}
		d, err := f(message{binary.NativeEndian.Uint16(data[4:]), binary.NativeEndian.Uint16(data[6:]),
			binary.NativeEndian.Uint32(data[8:]), data[unix.SizeofNlMsghdr:length]})
		if err != nil {
			return false, err
		}
		done = done || d
		data = data[min((length+3)&^3, len(data)):]
	}
	return done, nil
}
