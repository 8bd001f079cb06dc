package xtables

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Conn is a connection to the kernel's tables of one family.
type Conn struct {
	fd, level int
	layout    *layout
}

// Dial opens one, in the network namespace of the thread.
func Dial(v6 bool) (*Conn, error) {
	domain, level := unix.AF_INET, unix.IPPROTO_IP
	if v6 {
		domain, level = unix.AF_INET6, unix.IPPROTO_IPV6
	}
	fd, err := unix.Socket(domain, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return nil, fmt.Errorf("opening a raw socket: %w", err)
	}
	return &Conn{fd, level, layoutFor(v6)}, nil
}

// Close closes it.
func (c *Conn) Close() { _ = unix.Close(c.fd) } // nothing was written to it

// The socket options of both families: IPT_SO_… and IP6T_SO_….
const (
	getInfo     = 64
	getEntries  = 65
	setReplace  = 64
	addCounters = 65
)

// Sizes of struct ipt_replace, and of struct ipt_get_entries and struct xt_counters_info without what follows them.
const (
	sizeReplace = 96
	sizeAbout   = 40 // the table's name, a number
	maxTable    = 32 // of a table's name
)

func (c *Conn) get(option int, data unsafe.Pointer, size uint32) error {
	for {
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(c.fd), uintptr(c.level), uintptr(option),
			uintptr(data), uintptr(unsafe.Pointer(&size)), 0)
		if errno != unix.EINTR {
			return errnoError(errno)
		}
	}
}

func (c *Conn) set(option int, data []byte) error {
	for {
		_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(c.fd), uintptr(c.level), uintptr(option),
			uintptr(unsafe.Pointer(&data[0])), uintptr(len(data)), 0)
		if errno != unix.EINTR {
			return errnoError(errno)
		}
	}
}

func errnoError(errno unix.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

// Info returns how many entries a table has, and of how many bytes.
func (c *Conn) Info(table string) (entries, size uint32, err error) {
	i, err := c.info(table)
	return i.entries, i.size, err
}

func (c *Conn) info(table string) (i info, err error) {
	copy(i.name[:], table)
	if err := c.get(getInfo, unsafe.Pointer(&i), uint32(unsafe.Sizeof(i))); err != nil {
		return i, fmt.Errorf("table %s: %w", table, err)
	}
	return i, nil
}

// ErrChanged: another hand, that does not take the lock, changed the table since it was read.
var ErrChanged = errors.New("the table was changed meanwhile")

// maxGrowth is the spare room of a table in bytes, beside a share of its size: up to it no more memory is needed.
const maxGrowth = 64 << 10

// attempts is how often a table is read again while others change its size.
const attempts = 10

// Read reads a table.
func (c *Conn) Read(table string) (*Table, error) {
	for range attempts {
		t, err := c.read(table)
		if !errors.Is(err, unix.EAGAIN) {
			return t, err
		}
	}
	return nil, fmt.Errorf("reading table %s: %w", table, ErrChanged)
}

func (c *Conn) read(table string) (*Table, error) {
	i, err := c.info(table)
	if err != nil {
		return nil, err
	}
	end := sizeReplace + int(i.size)
	room, err := mapAnonymous(end + int(i.size)/16 + maxGrowth)
	if err != nil {
		return nil, err
	}
	buf := room[sizeReplace-sizeAbout : end]
	beginRequest(buf, table, i.size)
	err = c.get(getEntries, unsafe.Pointer(&buf[0]), uint32(len(buf)))
	if err == nil {
		var t *Table
		if t, err = parse(c.layout, i, buf[sizeAbout:]); err == nil {
			t.room = room
			return t, nil
		}
	}
	release(room)
	return nil, fmt.Errorf("reading table %s: %w", table, err)
}

// beginRequest begins a request with the table's name and a number.
func beginRequest(buf []byte, table string, number uint32) {
	copy(buf[:maxTable], table)
	binary.NativeEndian.PutUint32(buf[maxTable:], number)
}

// Replace replaces the kernel's table by the next one, and restores the counters of kept entries. If the kernel has
// another table by now, it returns ErrChanged.
func (c *Conn) Replace(n *Next) error {
	old := n.of.info.entries
	counters, err := mapAnonymous(sizeCounters * int(old))
	if err != nil {
		return err
	}
	defer release(counters)
	n.header(counters)
	err = c.set(setReplace, n.buf)
	if errors.Is(err, unix.EAGAIN) {
		err = ErrChanged
	}
	if err != nil {
		return fmt.Errorf("replacing table %s: %w", n.of.Name(), err)
	}
	return c.count(n, counters)
}

// header describes the entries to the kernel: struct ipt_replace.
func (n *Next) header(counters []byte) {
	h := n.buf[:sizeReplace:sizeReplace]
	copy(h, n.of.info.name[:])
	at := maxTable
	put := func(numbers ...uint32) {
		for _, v := range numbers {
			binary.NativeEndian.PutUint32(h[at:], v)
			at += 4
		}
	}
	put(n.of.info.validHooks, uint32(n.count), uint32(len(n.entries())))
	put(n.hooks[:]...)
	put(n.floors[:]...)
	put(n.of.info.entries)
	binary.NativeEndian.PutUint64(h[at:], uint64(uintptr(unsafe.Pointer(&counters[0]))))
}

// count adds the kernel's earlier counts to the counters of kept entries: struct xt_counters_info.
func (c *Conn) count(n *Next, counters []byte) error {
	buf, err := mapAnonymous(sizeAbout + sizeCounters*n.count)
	if err != nil {
		return err
	}
	defer release(buf)
	beginRequest(buf, n.of.Name(), uint32(n.count))
	for _, p := range n.kept {
		copy(buf[sizeAbout+sizeCounters*p.entry:], counters[sizeCounters*p.oldEntry:sizeCounters*(p.oldEntry+p.count)])
	}
	if err := c.set(addCounters, buf); err != nil {
		return fmt.Errorf("counters of table %s: %w", n.of.Name(), err)
	}
	return nil
}

// mapAnonymous returns memory outside of the garbage collector's: a table has megabytes, for a moment.
func mapAnonymous(size int) ([]byte, error) {
	buf, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("%d bytes: %w", size, err)
	}
	return buf, nil
}

func release(buf []byte) { _ = unix.Munmap(buf) } // it came from Mmap
