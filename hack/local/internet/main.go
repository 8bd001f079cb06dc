package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/spf13/pflag"
	"github.com/vishvananda/netlink"
)

const (
	bridge  = "internet"
	address = "10.64.255.254"
)

// The main goroutine keeps the process's first thread, whose namespace is what /proc/PID/ns/net shows. Other
// goroutines are on threads that stay outside.
func init() { runtime.LockOSThread() }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "internet: error: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	dns := pflag.String("dns", "", "`ADDRESS` of a DNS server outside of the namespace, for those inside")
	api := pflag.String("api", "", "`ADDRESS` of an API server outside of the namespace, for those inside")
	dir := pflag.String("data-dir", "", "directory in which the file pid appears when it is up")
	pflag.Parse()
	if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
		return fmt.Errorf("a network namespace of its own: %w", err)
	}
	if err := build(); err != nil {
		return err
	}
	if err := serveDNS(*dns); err != nil {
		return err
	}
	if err := serveAPI(*api); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(*dir, "pid"), fmt.Appendln(nil, os.Getpid()), 0o600); err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	<-ctx.Done()
	return nil
}

// build makes the bridge, and has the kernel route as a router does. Its link address is given: one that it chose would be
// the lowest of those that are plugged in, and so change when a cluster dies, for all others too.
func build() error {
	b := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridge, HardwareAddr: net.HardwareAddr{2, 0, 10, 64, 255, 254}}}
	if err := netlink.LinkAdd(b); err != nil {
		return fmt.Errorf("bridge: %w", err)
	}
	a := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(address), Mask: net.CIDRMask(16, 32)}}
	if err := netlink.AddrAdd(b, a); err != nil {
		return fmt.Errorf("address %s: %w", a, err)
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	for _, link := range []netlink.Link{lo, b} {
		if err := netlink.LinkSetUp(link); err != nil {
			return fmt.Errorf("%s up: %w", link.Attrs().Name, err)
		}
	}
	for file, value := range map[string]string{
		"ip_forward":                         "1",
		"conf/all/send_redirects":            "0", // nodes need not know each other
		"conf/" + bridge + "/send_redirects": "0",
	} {
		if err := os.WriteFile("/proc/sys/net/ipv4/"+file, []byte(value), 0); err != nil {
			return err
		}
	}
	return nil
}
