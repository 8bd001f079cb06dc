package main

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"federation/controllers/lbprovider/vip"
	"federation/hack/local/uplink"
)

// newTestInternet makes what the program internet makes.
// A goroutine that is locked to its thread ends it with itself, unless it is the main thread, which would keep a machine's network namespace: no test gets that one.
func init() { runtime.LockOSThread() }

func newTestInternet(t *testing.T) *internet {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: this test makes network namespaces")
	}
	n, made := &internet{}, make(chan error)
	go func() {
		runtime.LockOSThread() // it ends with its goroutine
		made <- func() (err error) {
			if n.ns, err = netns.New(); err != nil {
				return err
			}
			if n.links, err = netlink.NewHandleAt(n.ns); err != nil {
				return err
			}
			if err := uplink.MakeInternet(); err != nil {
				return err
			}
			n.bridge, err = n.links.LinkByName(uplink.Bridge)
			return err
		}()
	}()
	if err := <-made; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.links.Close(); _ = n.ns.Close() })
	return n
}

// runTestMachine holds an address on a machine, at which a server says a word, until end is closed.
func runTestMachine(n *internet, says string, at netip.Addr, up chan<- error, end <-chan struct{}) error {
	err := n.enterMachine("a-lb", netip.MustParseAddr("10.64.0.253"))
	if err != nil {
		return err
	}
	device, err := vip.Open(uplink.Name, []netip.Prefix{netip.PrefixFrom(at, 24).Masked()})
	if err != nil {
		return err
	}
	if err := device.Hold([]netip.Addr{at}); err != nil {
		return err
	}
	l, err := net.Listen("tcp4", netip.AddrPortFrom(at, 80).String())
	if err != nil {
		return err
	}
	defer l.Close()
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			_, _ = io.WriteString(c, says+" "+c.RemoteAddr().(*net.TCPAddr).IP.String())
			c.Close()
		}
	}()
	up <- nil
	<-end
	return nil
}

func plugged(n *internet) bool {
	_, err := n.links.LinkByName("a-lb")
	return err == nil
}

// TestMachines: an address of a network on the segment is answered by the machine that has it, by nobody after its end, and at once by the next one.
func TestMachines(t *testing.T) {
	n, at := newTestInternet(t), netip.MustParseAddr("192.0.2.1")
	if err := n.routeToSegment(netip.PrefixFrom(at, 24).Masked()); err != nil {
		t.Fatal(err)
	}
	ask := func() (said string, err error) {
		err = n.inside(func() error {
			c, err := net.DialTimeout("tcp4", netip.AddrPortFrom(at, 80).String(), 500*time.Millisecond)
			if err != nil {
				return err
			}
			defer c.Close()
			all, err := io.ReadAll(c)
			said = string(all)
			return err
		})
		return said, err
	}
	for _, name := range []string{"first", "second"} {
		up, end := make(chan error, 1), make(chan struct{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if err := runTestMachine(n, name, at, up, end); err != nil {
				up <- err
			}
		}()
		if err := <-up; err != nil {
			t.Fatal(err)
		}
		if said, err := ask(); err != nil || said != name+" "+uplink.InternetAddress {
			t.Errorf("the %s machine: %q, %v", name, said, err)
		}
		close(end)
		<-ended
		for until := time.Now().Add(10 * time.Second); plugged(n); time.Sleep(time.Millisecond) { // its thread ends a moment after this goroutine
			if time.Now().After(until) {
				t.Fatalf("the %s machine is still plugged in", name)
			}
		}
		if said, err := ask(); err == nil || errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("after the end of the %s machine: %q, %v", name, said, err)
		}
	}
}
