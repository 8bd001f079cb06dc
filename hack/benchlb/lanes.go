package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// Layer 4 is measured as where it is used: clients and a cluster are other hosts than the proxies', each in a network namespace of its own, joined by pairs
// of interfaces. One more pair joins clients and cluster, for what goes without a proxy.
const (
	proxySide, clientSide    = "198.18.1.1", "198.18.1.2"
	toCluster, streamCluster = "198.18.2.1", "198.18.2.2"
	directClient, directSide = "198.18.3.1", "198.18.3.2"
)

// lanes are the network namespaces beside that of the proxies.
type lanes struct{ clients, cluster netns.NsHandle }

// newLanes makes them. They end with the bench.
func newLanes() (l *lanes, err error) {
	l = &lanes{}
	for _, ns := range []*netns.NsHandle{&l.clients, &l.cluster} {
		if *ns, err = newNamespace(); err != nil {
			return nil, err
		}
		if err := within(*ns, allowConnections); err != nil {
			return nil, err
		}
	}
	here, err := netns.Get()
	if err != nil {
		return nil, err
	}
	for name, ends := range map[string][2]lane{
		"clients": {{here, proxySide}, {l.clients, clientSide}}, "cluster": {{here, toCluster}, {l.cluster, streamCluster}}, "direct": {{l.clients, directClient}, {l.cluster, directSide}},
	} {
		if err := join(name, ends[0], ends[1]); err != nil {
			return nil, err
		}
	}
	// As tcp_tw_reuse has it for the ports of proxies: the kernel keeps those of connections that have ended for no longer.
	for file, value := range map[string]string{"ipv4/ip_forward": "1", "netfilter/nf_conntrack_tcp_timeout_time_wait": "1"} {
		if err := os.WriteFile("/proc/sys/net/"+file, []byte(value), 0o644); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// lane is an end of a pair.
type lane struct {
	in      netns.NsHandle
	address string
}

// join makes a pair of interfaces of a name.
func join(name string, a, b lane) error {
	from, err := netlink.NewHandleAt(a.in)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := from.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: name, PeerNamespace: netlink.NsFd(b.in)}); err != nil {
		return fmt.Errorf("interface %s: %w", name, err)
	}
	for _, end := range []lane{a, b} {
		h, err := netlink.NewHandleAt(end.in)
		if err != nil {
			return err
		}
		defer h.Close()
		link, err := h.LinkByName(name)
		if err != nil {
			return err
		}
		address, err := netlink.ParseAddr(end.address + "/24")
		if err != nil {
			return err
		}
		if err := h.AddrAdd(link, address); err != nil {
			return err
		}
		if err := h.LinkSetUp(link); err != nil {
			return err
		}
	}
	return nil
}

func newNamespace() (ns netns.NsHandle, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := netns.Get()
	if err != nil {
		return ns, err
	}
	defer func() { _ = before.Close() }() // it was read
	if ns, err = netns.New(); err != nil {
		return ns, err
	}
	return ns, netns.Set(before)
}

// within calls f on a thread that is in a network namespace.
func within(ns netns.NsHandle, f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := netns.Get()
	if err != nil {
		return err
	}
	defer func() { _ = before.Close() }() // it was read
	if err := netns.Set(ns); err != nil {
		return err
	}
	err = f()
	if failed := netns.Set(before); failed != nil {
		panic(failed) // the thread would be lost
	}
	return err
}

// machineCPU is what all CPUs of the machine have worked so far, whatever for: processes, the kernel and its interrupts.
func machineCPU() (sum time.Duration) {
	text, _ := os.ReadFile("/proc/stat") // it is there
	first, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(first)[1:] {
		const idle, iowait, steal = 3, 4, 7 // those from steal on count twice, or for others
		if i == idle || i == iowait || i >= steal {
			continue
		}
		n, _ := strconv.ParseInt(field, 10, 64)
		sum += time.Duration(n) * 10 * time.Millisecond
	}
	return sum
}
