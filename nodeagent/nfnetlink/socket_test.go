package nfnetlink

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"federation/nodeagent/nettest"
)

// dial opens a socket in the network of a fresh node.
func dial(t *testing.T) (*nettest.Node, *Socket) {
	t.Helper()
	node := nettest.New(t).Nodes[0]
	var s *Socket
	if err := node.Do(func() (err error) { s, err = Dial(); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return node, s
}

// table adds a message about a table to a batch.
func (b *Batch) table(message, flags int, name string) {
	b.Begin(unix.NFNL_SUBSYS_NFTABLES<<8|message, flags, unix.NFPROTO_IPV4)
	b.String(unix.NFTA_TABLE_NAME, name)
}

func tables(t *testing.T, s *Socket) (names []string) {
	t.Helper()
	var b Batch
	b.Begin(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETTABLE, 0, unix.NFPROTO_IPV4)
	if err := s.Dump(&b, func(family uint8, attributes []byte) {
		if family != unix.NFPROTO_IPV4 {
			t.Errorf("family %d", family)
		}
		names = append(names, strings.TrimRight(string(Attribute(attributes, unix.NFTA_TABLE_NAME)), "\x00"))
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// A transaction is in the kernel as a whole, or not at all with the number of the message that failed; the socket serves on.
func TestCommit(t *testing.T) {
	_, s := dial(t)
	var good, bad Batch
	for i := range 300 { // so that reading them takes more than one datagram
		good.table(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE, fmt.Sprintf("t%03d", i))
	}
	if err := s.Commit(&Batch{}); err != nil {
		t.Errorf("an empty batch: %v", err)
	}
	if err := s.Commit(&good); err != nil || len(tables(t, s)) != 300 {
		t.Fatalf("%v, tables %v", err, tables(t, s))
	}
	bad.table(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE, "new")
	bad.table(unix.NFT_MSG_DELTABLE, 0, "none")
	bad.table(unix.NFT_MSG_DELTABLE, 0, "t000")
	bad.table(unix.NFT_MSG_DELTABLE, 0, "none either")
	var failed *MessageError
	if err := s.Commit(&bad); !errors.As(err, &failed) || failed.Index != 1 || !errors.Is(err, syscall.ENOENT) {
		t.Errorf("the second message fails: %v", err)
	}
	if got := tables(t, s); len(got) != 300 || got[0] != "t000" {
		t.Errorf("after a transaction that failed: %d tables, %v", len(got), got[0])
	}
	var one Batch
	one.table(unix.NFT_MSG_DELTABLE, 0, "t000")
	if err := s.Commit(&one); err != nil || len(tables(t, s)) != 299 {
		t.Errorf("the next one: %v, %d tables", err, len(tables(t, s)))
	}
}

// Messages that are no transaction each have their own outcome.
func TestDo(t *testing.T) {
	_, s := dial(t)
	var b Batch
	b.table(unix.NFT_MSG_GETTABLE, 0, "none")
	b.table(unix.NFT_MSG_GETGEN, 0, "")
	b.Begin(99<<8, 0, unix.NFPROTO_IPV4) // no such subsystem
	errs := s.Do(&b)
	if len(errs) != 2 || !errors.Is(errs[0], syscall.ENOENT) || !errors.Is(errs[1], syscall.EINVAL) {
		t.Errorf("of three messages: %v; want that the first finds no table, and the last no subsystem", errs)
	}
}

// listening opens the events of nftables without those of s, with a buffer of so many bytes.
func listening(t *testing.T, node *nettest.Node, s *Socket, bytes int) *Events {
	t.Helper()
	var e *Events
	if err := node.Do(func() (err error) { e, err = Listen(unix.NFNLGRP_NFTABLES, s.Port()); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	raw, err := e.file.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, bytes) }); err != nil {
		t.Fatal(err)
	}
	return e
}

// The socket receives others' changes, but not those of the excepted socket. If too much comes at once, it reports a
// loss, and receives what comes then.
func TestEvents(t *testing.T) {
	node, s := dial(t)
	var other *Socket
	if err := node.Do(func() (err error) { other, err = Dial(); return err }); err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	e := listening(t, node, s, 1<<12)
	commit := func(by *Socket, name string) {
		t.Helper()
		var b Batch
		b.table(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE, name)
		if err := by.Commit(&b); err != nil {
			t.Fatal(err)
		}
	}
	next := func() (name string, err error) {
		for name == "" && err == nil {
			err = e.Next(func(_ int, attributes []byte) {
				if n := Attribute(attributes, unix.NFTA_TABLE_NAME); n != nil {
					name = strings.TrimRight(string(n), "\x00")
				}
			})
		}
		return name, err
	}
	commit(s, "ours")
	commit(other, "theirs")
	if name, err := next(); name != "theirs" || err != nil {
		t.Errorf("heard of %q, %v; want theirs", name, err)
	}
	for i := range 200 {
		commit(other, fmt.Sprint("many", i))
	}
	var err error
	for range 300 {
		if _, err = next(); err != nil {
			break
		}
	}
	if !errors.Is(err, syscall.ENOBUFS) {
		t.Fatalf("200 changes for a buffer of 4 KiB: %v, want ENOBUFS", err)
	}
	for i, name := 0, ""; !strings.HasPrefix(name, "after"); i++ { // what the buffer still had comes first
		commit(other, fmt.Sprint("after", i))
		if name, err = next(); err != nil && !errors.Is(err, syscall.ENOBUFS) {
			t.Fatal(err)
		}
	}
}

// pair returns a socket that reads what the test writes.
func pair(t testing.TB) (ours, theirs int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fds[0], fds[1]
}

// Whatever the kernel sends, reading it ends, with an error or without.
func FuzzReceive(f *testing.F) {
	var b Batch
	b.table(unix.NFT_MSG_NEWTABLE, 0, "t")
	f.Add(b.buf)
	f.Add(slices.Concat(b.buf, []byte{36, 0, 0, 0, unix.NLMSG_ERROR, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 254, 255, 255, 255}))
	f.Add([]byte{16, 0, 0, 0, unix.NLMSG_DONE, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{15, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0})
	ours, theirs := pair(f)
	listens, speaks := pair(f)
	if err := unix.SetNonblock(listens, true); err != nil {
		f.Fatal(err)
	}
	s := &Socket{fd: ours, buf: make([]byte, 1<<17)}
	e := &Events{file: os.NewFile(uintptr(listens), "events"), buf: make([]byte, 1<<17)}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 || len(data) > 1<<16 {
			return
		}
		bytes := 0
		for _, fd := range []int{theirs, speaks} {
			if _, err := unix.Write(fd, data); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = s.receive(func(m message) (bool, error) {
			bytes += unix.SizeofNlMsghdr + len(m.data)
			return false, m.err()
		})
		if bytes > len(data) {
			t.Errorf("messages of %d bytes in %d", bytes, len(data))
		}
		bytes = 0
		if err := e.Next(func(_ int, attributes []byte) { bytes += len(attributes) }); err != nil || bytes > len(data) {
			t.Errorf("%v; attributes of %d bytes in %d", err, bytes, len(data))
		}
	})
}

func TestGeneration(t *testing.T) {
	_, s := dial(t)
	before, err := s.Generation()
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint32(3) {
		if now, err := s.Generation(); err != nil || now != before+n {
			t.Errorf("after %d transactions: %d, %v, want %d", n, now, err, before+n)
		}
		var b Batch
		b.table(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE, fmt.Sprint("t", n))
		if err := s.Commit(&b); err != nil {
			t.Fatal(err)
		}
	}
}

// Only the kernel answers: what another process of the network sends to the socket is not read as an answer.
func TestOnlyTheKernelIsHeard(t *testing.T) {
	node, s := dial(t)
	address, err := unix.Getsockname(s.fd)
	if err != nil {
		t.Fatal(err)
	}
	refusal := make([]byte, unix.SizeofNlMsghdr+4)
	binary.NativeEndian.PutUint32(refusal, uint32(len(refusal)))
	binary.NativeEndian.PutUint16(refusal[4:], unix.NLMSG_ERROR)
	binary.NativeEndian.PutUint32(refusal[unix.SizeofNlMsghdr:], ^uint32(unix.EPERM)+1)
	var b Batch
	b.table(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE, "ours")
	if err := node.Do(func() error {
		stranger, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
		if err != nil {
			return err
		}
		defer unix.Close(stranger)
		for seq := range uint32(64) { // whatever the socket's next number is
			binary.NativeEndian.PutUint32(refusal[8:], s.seq+seq)
			if err := unix.Sendto(stranger, refusal, 0, address); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(&b); err != nil {
		t.Errorf("a stranger's refusal counts: %v", err)
	}
	if got := tables(t, s); !slices.Equal(got, []string{"ours"}) {
		t.Errorf("tables %v, want ours", got)
	}
}
