package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// clients is how many sockets send at a time, each from a network of its own.
	clients = 16
	// window is how many queries each has open.
	window = 32
)

// load is what was sent and what came back.
type load struct {
	answers, lost, errors atomic.Int64
}

// count looks at an answer.
func (l *load) count(reply []byte) {
	l.answers.Add(1)
	if len(reply) < 12 || reply[3]&0xf != 0 && reply[3]&0xf != 3 || reply[2]&2 != 0 {
		l.errors.Add(1) // neither NOERROR nor NXDOMAIN, or cut off
	}
}

// run keeps the server busy until the context ends.
func (l *load) run(ctx context.Context, network, address string, packed [][]byte) error {
	var running sync.WaitGroup
	failures := make(chan error, clients)
	for c := range clients {
		running.Go(func() {
			from := net.IPv4(127, 0, byte(c+1), 1)
			mine := packed[c*len(packed)/clients : (c+1)*len(packed)/clients]
			if network == "tcp" {
				failures <- l.overTCP(ctx, from, address, mine)
				return
			}
			failures <- l.overUDP(ctx, from, address, mine)
		})
	}
	running.Wait()
	close(failures)
	var all []error
	for err := range failures {
		all = append(all, err)
	}
	return errors.Join(all...)
}

type mmsghdr struct {
	header unix.Msghdr
	length uint32
}

// packets are the queries and answers of one socket.
type packets struct {
	send, receive [window]mmsghdr
	sendIO        [window]unix.Iovec
	receiveIO     [window]unix.Iovec
	data          [window][2048]byte
}

func newPackets() *packets {
	p := &packets{}
	for i := range window {
		p.receiveIO[i].Base = &p.data[i][0]
		p.receiveIO[i].SetLen(len(p.data[i]))
		p.receive[i].header.Iov, p.send[i].header.Iov = &p.receiveIO[i], &p.sendIO[i]
		p.receive[i].header.SetIovlen(1)
		p.send[i].header.SetIovlen(1)
	}
	return p
}

func (l *load) overUDP(ctx context.Context, from net.IP, address string, mine [][]byte) error {
	to, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return err
	}
	conn, err := net.DialUDP("udp", &net.UDPAddr{IP: from}, to)
	if err != nil {
		return err
	}
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	p, next, open := newPackets(), 0, 0
	for ctx.Err() == nil {
		for i := range window - open {
			query := mine[(next+i)%len(mine)]
			p.sendIO[i].Base = &query[0]
			p.sendIO[i].SetLen(len(query))
		}
		sent, err := many(raw.Write, unix.SYS_SENDMMSG, p.send[:window-open])
		if err != nil {
			return fmt.Errorf("sending to %s: %w", address, err)
		}
		next, open = next+sent, open+sent
		_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		got, err := many(raw.Read, unix.SYS_RECVMMSG, p.receive[:])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			l.lost.Add(int64(open))
			open = 0
			continue
		}
		if err != nil {
			return fmt.Errorf("receiving from %s: %w", address, err)
		}
		for i := range got {
			l.count(p.data[i][:p.receive[i].length])
		}
		open = max(open-got, 0) // more than is open: answers that were given up
	}
	return nil
}

// many sends or receives as many packets as go at once, at least one.
func many(wait func(func(uintptr) bool) error, call uintptr, headers []mmsghdr) (n int, err error) {
	if len(headers) == 0 {
		return 0, nil
	}
	failed := wait(func(fd uintptr) bool {
		r, _, errno := unix.Syscall6(call, fd, uintptr(unsafe.Pointer(&headers[0])), uintptr(len(headers)), unix.MSG_DONTWAIT, 0, 0)
		if errno == syscall.EAGAIN || errno == syscall.EINTR {
			return false
		}
		if n = int(r); errno != 0 {
			n, err = 0, errno
		}
		return true
	})
	return n, errors.Join(failed, err)
}

func (l *load) overTCP(ctx context.Context, from net.IP, address string, mine [][]byte) error {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}
	conn, err := dialer.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	var out []byte
	in := make([]byte, 65536)
	for next := 0; ctx.Err() == nil; next += window {
		out = out[:0]
		for i := range window {
			query := mine[(next+i)%len(mine)]
			out = append(binary.BigEndian.AppendUint16(out, uint16(len(query))), query...)
		}
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		if _, err := conn.Write(out); err != nil {
			return err
		}
		for range window {
			if _, err := io.ReadFull(conn, in[:2]); err != nil {
				return err
			}
			reply := in[:binary.BigEndian.Uint16(in)]
			if _, err := io.ReadFull(conn, reply); err != nil {
				return err
			}
			l.count(reply)
		}
	}
	return nil
}
