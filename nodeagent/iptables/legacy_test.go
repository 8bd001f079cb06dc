package iptables

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"federation/nodeagent/nettest"
	"federation/nodeagent/nfnetlink"
	"federation/nodeagent/ruleset"
	"federation/nodeagent/xtables"
)

// ofOthers are rules of others in the table nat, with counters, in words that we have no use for; their chains come before, between and after ours.
const ofOthers = `*nat
:PREROUTING ACCEPT [7000000:420000000]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [3000000:180000000]
:AAA - [0:0]
:KUBE-OTHER - [0:0]
:ZZZ - [0:0]
[1:60] -A PREROUTING -m multiport -p tcp --dports 80,443 -j AAA
[2:120] -A PREROUTING -p udp -m limit --limit 5/sec
[3:180] -A POSTROUTING -s 198.51.100.0/24 -m hashlimit --hashlimit-above 5/sec --hashlimit-name others -g ZZZ
[4:240] -A AAA -p tcp -j REDIRECT --to-ports 8080
[5:300] -A AAA -j KUBE-OTHER
[6:360] -A KUBE-OTHER -m statistic --mode nth --every 3 --packet 1 -j ZZZ
[7:420] -A ZZZ -m recent --name others --update --seconds 5 --hitcount 3
COMMIT
`

// legacies runs a test in a node of a rig for each family.
func legacies(t *testing.T, do func(t *testing.T, node *nettest.Node, f *family, w *Writer)) {
	if _, err := exec.LookPath("iptables-legacy-restore"); err != nil && os.Getenv("CI") == "" {
		t.Skip("iptables is not installed: hack/install-tools.sh tests")
	}
	for _, ipv6 := range []bool{false, true} {
		t.Run(map[bool]string{false: "IPv4", true: "IPv6"}[ipv6], func(t *testing.T) {
			w := newWriter(t, Config{Backend: Legacy, IPv4: !ipv6, IPv6: ipv6})
			do(t, nettest.New(t).Nodes[0], w.families[0], w)
		})
	}
}

// few are the last digits of chains' counters: a few packets may come by that nobody sent.
var few = regexp.MustCompile(`^(:.*\d)\d{3}:(\d+)\d{5}]`)

// savedOfOthers returns what iptables-legacy-save prints, with counters, of all that is not ours.
func savedOfOthers(t *testing.T, node *nettest.Node, f *family) string {
	t.Helper()
	var out []string
	in(t, node, func() error {
		text, err := f.output(t.Context(), "save", nil, "-c", "-t", nat)
		for l := range strings.Lines(string(text)) {
			if ours := regexp.MustCompile(`KUBE-[^O]|^#`); !ours.MatchString(l) {
				out = append(out, few.ReplaceAllString(l, "$1…:$2…]"))
			}
		}
		return err
	})
	return strings.Join(out, "")
}

// Foreign rules stay as they are, byte for byte and count for count, while ours are added, changed and deleted.
func TestOthersRulesAndCountersStay(t *testing.T) {
	legacies(t, func(t *testing.T, node *nettest.Node, f *family, w *Writer) {
		text, ports := ofOthers, only(testPorts(3), f.ipv6)
		if f.ipv6 {
			text = strings.ReplaceAll(text, "198.51.100.0/24", "2001:db8:51::/48")
		}
		in(t, node, func() error { return f.run(t.Context(), "restore", []byte(text), "--counters") })
		want := savedOfOthers(t, node, f)
		if !strings.Contains(want, "[6:360] -A KUBE-OTHER") {
			t.Fatalf("others have:\n%s", want)
		}
		for _, do := range []func() error{
			func() error { return w.Sync(t.Context(), testNode(), ports[1:]) },
			func() error { return w.Write(t.Context(), testNode(), []ruleset.PortChange{{After: ports[0]}}) },
			func() error { return w.Write(t.Context(), testNode(), []ruleset.PortChange{{Before: ports[1]}}) },
			func() error { return w.Cleanup(t.Context(), false) },
		} {
			in(t, node, do)
			if have := savedOfOthers(t, node, f); have != want {
				t.Fatalf("others have:\n%s\nbefore:\n%s", have, want)
			}
		}
	})
}

// iptables-legacy makes the same entries as we do from what it printed: a restart after it writes nothing.
func TestEntriesAreAsIptablesMakesThem(t *testing.T) {
	legacies(t, func(t *testing.T, node *nettest.Node, f *family, w *Writer) {
		of := testNode()
		of.NodePortAddrs = of.Addrs
		for _, pods := range []ruleset.Pods{of.Pods, {InterfacePrefix: "veth"}, {Bridge: "cni0"}} {
			of.Pods = pods
			ports := only(testPorts(40), f.ipv6)
			in(t, node, func() error { return w.Sync(t.Context(), of, ports) })
			in(t, node, func() error {
				text, err := f.output(t.Context(), "save", nil)
				if err != nil {
					return err
				}
				return f.run(t.Context(), "restore", text)
			})
			f.exchange = func(*xtables.Conn, *xtables.Next) error { return errors.New("not the same entries") }
			in(t, node, func() error { return w.Sync(t.Context(), of, ports) })
			f.exchange = (*xtables.Conn).Replace
			if savedAsWrittenOf(t, node, f, of, ports); t.Failed() {
				return
			}
		}
	})
}

// Another hand that takes the lock loses nothing, and neither do we.
func TestAnotherHandAtTheSameTime(t *testing.T) {
	legacies(t, func(t *testing.T, node *nettest.Node, f *family, w *Writer) {
		const times = 40
		ports := only(testPorts(8), f.ipv6)
		in(t, node, func() error { return w.Sync(t.Context(), testNode(), ports) })
		others := make(chan error, 1)
		go func() {
			others <- node.Do(func() (err error) {
				for i := range times {
					args := []string{"--wait", "-t", nat, "-A", "OUTPUT", "-p", "tcp", "--dport", fmt.Sprint(1 + i), "-j", "ACCEPT"}
					if out, failed := exec.Command(f.command(), args...).CombinedOutput(); failed != nil {
						err = errors.Join(err, fmt.Errorf("%w: %s", failed, out))
					}
				}
				return err
			})
		}()
		writes, done := 0, false
		for ; !done; writes++ {
			in(t, node, func() error {
				return w.Write(t.Context(), testNode(), []ruleset.PortChange{{Before: ports[writes%8]}, {After: ports[writes%8]}, {Before: ports[(writes+1)%8]}})
			})
			in(t, node, func() error {
				return w.Write(t.Context(), testNode(), []ruleset.PortChange{{After: ports[(writes+1)%8]}})
			})
			select {
			case err := <-others:
				if done = true; err != nil {
					t.Error(err)
				}
			default:
			}
		}
		savedAsWrittenOf(t, node, f, testNode(), ports)
		if have := savedOfOthers(t, node, f); strings.Count(have, "-j ACCEPT") != times || writes < 2 {
			t.Errorf("%d writes, and others have:\n%s", writes, have)
		}
	})
}

// If another process writes between our read and write, with or without the lock, nothing is lost, and a check follows.
func TestAnotherHandWithoutTheLock(t *testing.T) {
	legacies(t, func(t *testing.T, node *nettest.Node, f *family, w *Writer) {
		ports, once := only(testPorts(2), f.ipv6), true
		f.exchange = func(c *xtables.Conn, next *xtables.Next) error {
			if once {
				once = false
				cmd := exec.Command(f.command(), "-t", nat, "-A", "OUTPUT", "-j", "ACCEPT")
				cmd.Env = append(os.Environ(), "XTABLES_LOCKFILE="+filepath.Join(t.TempDir(), "lock"))
				if out, err := cmd.CombinedOutput(); err != nil {
					return fmt.Errorf("%w: %s", err, out)
				}
			}
			return c.Replace(next)
		}
		in(t, node, func() error { return w.Sync(t.Context(), testNode(), ports) })
		if have := savedOfOthers(t, node, f); strings.Count(have, "-A OUTPUT -j ACCEPT") != 1 {
			t.Errorf("others have:\n%s", have)
		}
		savedAsWrittenOf(t, node, f, testNode(), ports)
		in(t, node, func() error {
			if !f.mayHaveLostRules(t.Context(), 0) {
				t.Error("not seen")
			}
			return nil
		})
		f.exchange = func(*xtables.Conn, *xtables.Next) error { return xtables.ErrChanged }
		err := node.Do(func() error {
			return w.Write(t.Context(), testNode(), []ruleset.PortChange{{Before: ports[0]}})
		})
		if !errors.Is(err, xtables.ErrChanged) {
			t.Errorf("one that never ends: %v", err)
		}
	})
}

// Another process keeps writing without the lock: Sync ends, with an error if the other was always faster. When it
// stops, a check finds what is missing, and a Sync restores it.
func TestLegacyUnderEndlessForeignWrites(t *testing.T) {
	eachBackend(t, func(t *testing.T, node *nettest.Node, b Backend) {
		w, ports := newWriter(t, Config{Backend: b, IPv4: true}), only(testPorts(40), false)
		f := w.families[0]
		var stop atomic.Bool
		ended := make(chan error)
		go func() { ended <- node.Do(func() error { return harm(b, &stop) }) }()
		for failed, n := 0, 0; failed == 0 || n < 5; n++ { // until it was in Sync's way
			if node.Do(func() error { return w.Sync(t.Context(), testNode(), ports) }) != nil {
				failed++
			}
		}
		stop.Store(true)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if f.state != nil {
			in(t, node, func() error {
				if !f.mayHaveLostRules(t.Context(), 0) {
					t.Error("not seen")
				}
				return nil
			})
		}
		in(t, node, func() error { return w.Sync(t.Context(), testNode(), ports) })
		savedAsWrittenOf(t, node, f, testNode(), ports)
		restores := 0
		again := writer(t, b, &restores)
		again.families = again.families[:1]
		in(t, node, func() error { return again.Sync(t.Context(), testNode(), ports) })
		if restores != 0 {
			t.Errorf("a Sync with all in order wrote %d times", restores)
		}
	})
}

// harm deletes all chains of the table nat, again and again; in legacy tables it alternates that with a chain of its
// own, because the kernel shows only the number of entries.
func harm(b Backend, stop *atomic.Bool) error {
	if b == NFT {
		s, err := nfnetlink.Dial()
		if err != nil {
			return err
		}
		defer s.Close()
		for !stop.Load() {
			var batch nfnetlink.Batch
			batch.Begin(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_DELTABLE, 0, unix.NFPROTO_IPV4)
			batch.String(unix.NFTA_TABLE_NAME, nat)
			_ = s.Commit(&batch) // there may be none
		}
		return nil
	}
	c, err := xtables.Dial(false)
	if err != nil {
		return err
	}
	defer c.Close()
	for n := 0; !stop.Load(); n++ {
		_ = harmTable(c, n) // ours may have been there first
	}
	return nil
}

func harmTable(c *xtables.Conn, n int) error {
	t, err := c.Read(nat)
	if err != nil {
		return err
	}
	defer t.Close()
	e := xtables.Edit{Chains: map[string][]string{}, Make: entryOf(false)}
	for chain := range t.All() {
		if strings.HasPrefix(chain, kube) {
			e.Chains[chain] = nil
		}
	}
	for i := range 2 {
		e.Chains[fmt.Sprint("OTHER", i)] = []string{"-j RETURN"}
		if (n+i)%3 == 0 {
			e.Chains[fmt.Sprint("OTHER", i)] = nil
		}
	}
	next, err := t.Apply(e)
	if err != nil {
		return err
	}
	defer next.Close()
	return c.Replace(next)
}

// If the kernel lacks the table, iptables is run, which may load its module, and reports what is missing.
func TestATableThatIsMissing(t *testing.T) {
	legacies(t, func(t *testing.T, node *nettest.Node, f *family, _ *Writer) {
		err := node.Do(func() error {
			if err := f.open(t.Context()); err != nil {
				return err
			}
			defer f.close()
			_, err := f.table(t.Context(), "none")
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "Table does not exist") {
			t.Errorf("%v", err)
		}
	})
}

// A lock held by another process is waited for, and a timeout is an error that says so.
func TestTheLockIsWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	t.Setenv("XTABLES_LOCKFILE", path)
	unlock, err := xtables.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := xtables.Lock(stopped); !errors.Is(err, context.Canceled) {
		t.Errorf("two have it: %v", err)
	}
	next := make(chan error)
	go func() {
		unlock, err := xtables.Lock(t.Context())
		if err == nil {
			unlock()
		}
		next <- err
	}()
	unlock()
	if err := <-next; err != nil {
		t.Error(err)
	}
	t.Setenv("XTABLES_LOCKFILE", filepath.Join(path, "none"))
	if _, err := xtables.Lock(t.Context()); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("%v", err)
	}
}
