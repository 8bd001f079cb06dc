package nfnetlink

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Events are the kernel's messages to a group.
type Events struct {
	file  *os.File
	group int
	buf   []byte
}

// Listen opens the events of a group (NFNLGRP_…) in the network namespace of the thread, without those that the socket
// with a port caused.
func Listen(group int, except uint32) (*Events, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("opening a netfilter socket: %w", err)
	}
	e := &Events{file: os.NewFile(uintptr(fd), "netfilter events"), group: group, buf: make([]byte, 1<<17)}
	if err := errors.Join(listen(fd, except), e.Join()); err != nil {
		e.Close()
		return nil, fmt.Errorf("listening to netfilter's group %d: %w", group, err)
	}
	return e, nil
}

// Leave stops the kernel's events until Join. The kernel makes messages only if somebody is in the group, which for a
// large transaction is more than half of its time.
func (e *Events) Leave() error { return e.member(unix.NETLINK_DROP_MEMBERSHIP) }

// Join undoes Leave. Events in between are lost.
func (e *Events) Join() error { return e.member(unix.NETLINK_ADD_MEMBERSHIP) }

func (e *Events) member(how int) (err error) {
	raw, failed := e.file.SyscallConn()
	if failed != nil {
		return failed
	}
	failed = raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_NETLINK, how, e.group) })
	return errors.Join(failed, err)
}

func listen(fd int, except uint32) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20); err != nil {
		return err
	}
	// The kernel drops what bears the port itself, so that a large transaction of ours does not fill the buffer. All
	// messages of a datagram are of one transaction. The filter reads in network byte order.
	swapped := binary.BigEndian.Uint32(binary.NativeEndian.AppendUint32(nil, except))
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 12},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: swapped, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
		{Code: unix.BPF_RET | unix.BPF_K, K: 1 << 30},
	}
	filter := &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, filter); err != nil {
		return err
	}
	return unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
}

// Next waits for the next datagram and calls each with its messages, of a type as in Batch.Begin. ENOBUFS means that
// some were lost.
func (e *Events) Next(each func(kind int, attributes []byte)) error {
	n, err := e.file.Read(e.buf)
	if err != nil {
		return err
	}
	for data := e.buf[:n]; len(data) >= unix.SizeofNlMsghdr+4; {
		length := int(binary.NativeEndian.Uint32(data))
		if length < unix.SizeofNlMsghdr+4 || length > len(data) {
			return nil
		}
		each(int(binary.NativeEndian.Uint16(data[4:])), data[unix.SizeofNlMsghdr+4:length])
		data = data[min((length+3)&^3, len(data)):]
	}
	return nil
}

// Close ends Next.
func (e *Events) Close() { _ = e.file.Close() }
