package main

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What the kernel knows of a table, and takes for it, as linux/netfilter_ipv4/ip_tables.h has it; entries follow the second.
type (
	tableInfo struct {
		name           [32]byte
		hooks          uint32
		begins, floors [5]uint32
		entries, size  uint32
	}
	tableReplace struct {
		name                 [32]byte
		hooks, entries, size uint32
		begins, floors       [5]uint32
		counters             uint32
		into                 *byte
	}
	tableAbout struct { // how struct ipt_get_entries and struct xt_counters_info begin
		name   [32]byte
		number uint32
		_      uint32
	}
)

// replaceByItself has the kernel hand out a table of iptables-legacy, take it again, and add the counters: the least that any
// change of it takes.
func replaceByItself(table string) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(s) }()
	info := &tableInfo{}
	copy(info.name[:], table)
	const head, about, counter = int(unsafe.Sizeof(tableReplace{})), int(unsafe.Sizeof(tableAbout{})), 16
	if err := getTable(s, unsafe.Pointer(info), uint32(unsafe.Sizeof(*info)), 64); err != nil { // IPT_SO_GET_INFO
		return err
	}
	entries, err := pages(head + int(info.size))
	if err != nil {
		return err
	}
	counters, err := pages(about + counter*int(info.entries))
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(unix.Munmap(entries), unix.Munmap(counters)) }()
	got := entries[head-about:]
	*(*tableAbout)(unsafe.Pointer(&got[0])) = tableAbout{name: info.name, number: info.size}
	if err := getTable(s, unsafe.Pointer(&got[0]), uint32(len(got)), 65); err != nil { // IPT_SO_GET_ENTRIES
		return err
	}
	*(*tableReplace)(unsafe.Pointer(&entries[0])) = tableReplace{info.name, info.hooks, info.entries, info.size, info.begins, info.floors, info.entries, &counters[about]}
	if err := setTable(s, entries, 64); err != nil { // IPT_SO_SET_REPLACE
		return err
	}
	*(*tableAbout)(unsafe.Pointer(&counters[0])) = tableAbout{name: info.name, number: info.entries}
	return setTable(s, counters, 65) // IPT_SO_SET_ADD_COUNTERS
}

// pages is memory of which nobody else knows.
func pages(size int) ([]byte, error) {
	return unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
}

func getTable(s int, data unsafe.Pointer, size uint32, option int) error {
	return failed(unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(s), unix.IPPROTO_IP, uintptr(option), uintptr(data), uintptr(unsafe.Pointer(&size)), 0))
}

func setTable(s int, data []byte, option int) error {
	return failed(unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(s), unix.IPPROTO_IP, uintptr(option), uintptr(unsafe.Pointer(&data[0])), uintptr(len(data)), 0))
}

func failed(_, _ uintptr, errno unix.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}
