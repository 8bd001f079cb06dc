package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"federation/controllers/loadbalancer/plan"
)

// newHanging starts a server that says its name and then echoes, and does neither while the gate is locked: only the kernel takes connections then.
func newHanging(t *testing.T, name string, n byte, port uint16, gate *sync.RWMutex) *echo {
	t.Helper()
	e := &echo{name: name, addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, n}), port)}
	l, err := net.Listen("tcp", e.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	pass := func() { gate.RLock(); gate.RUnlock() } //nolint:staticcheck // it waits
	go acceptAll(l, func(c net.Conn) {
		pass()
		_, _ = io.WriteString(c, name+"\n")
		for lines := bufio.NewReader(c); ; {
			line, err := lines.ReadString('\n')
			if pass(); err != nil {
				return
			}
			_, _ = io.WriteString(c, line)
		}
	})
	return e
}

// learned waits until a target is known to answer ends.
func (b *streamBed) learned(at netip.AddrPort) {
	b.t.Helper()
	eventually(b.t, func() string {
		t := b.target(at)
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.prompt < promptAfter {
			return fmt.Sprintf("%d ends have been answered", t.prompt)
		}
		return ""
	})
}

// TestAClusterThatHangsGetsNoNewConnections, though the kernel takes them for it. Open ones stay, and it is used again as soon as it goes on.
func TestAClusterThatHangsGetsNoNewConnections(t *testing.T) {
	port, gate := freePort(t), &sync.RWMutex{}
	east, west := newHanging(t, "east-a", 101, port, gate), newEcho(t, "west-a", 102, port)
	b := newStreamBed(t, Options{}, StreamOptions{}, nil, east, west)
	kept, name := b.open()
	if name != "east-a" {
		t.Fatal(name)
	}
	b.learned(east.addr)
	gate.Lock()
	began := time.Now()
	eventually(t, func() string {
		if p, _ := b.Pool(b.in.ID); p.Parts[0].Cluster != "west-a" {
			return "new connections go to the cluster that hangs"
		}
		return ""
	})
	t.Logf("new connections go elsewhere after %s", time.Since(began))
	for range 20 {
		if _, name := b.open(); name != "west-a" {
			t.Fatalf("%q answers", name)
		}
	}
	if p, _ := b.Pool(b.in.ID); p.Parts[1].Why != "serving, tier 0; out: it takes connections, and says nothing" {
		t.Errorf("%+v", p.Parts[1])
	}
	gate.Unlock()
	if _, err := io.WriteString(kept, "still\n"); err != nil || readLine(kept) != "still" {
		t.Errorf("the open connection does not go on: %v", err)
	}
	eventually(t, func() string {
		if _, name := b.open(); name != "east-a" {
			return name + " answers, though the other one goes on"
		}
		return ""
	})
}

// TestASlowClusterIsNotTakenForSilent: one that is slow to speak, one that never ends a connection from its side, and one that serves what is open.
func TestASlowClusterIsNotTakenForSilent(t *testing.T) {
	for what, serve := range map[string]func(net.Conn){
		"that speaks after seconds": func(c net.Conn) {
			if _, err := c.Read(make([]byte, 1)); err == nil { // a client's word; a check says none
				time.Sleep(3 * time.Second)
				_, _ = io.WriteString(c, "east-a\n")
			}
		},
		"that leaves ends unanswered": func(c net.Conn) { time.Sleep(4 * time.Second) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			port := freePort(t)
			at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.101"), port)
			l, err := net.Listen("tcp", at.String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			go acceptAll(l, serve)
			b := newStreamBed(t, Options{}, StreamOptions{}, nil, &echo{name: "east-a", addr: at}, newEcho(t, "west-a", 102, port))
			for until := time.Now().Add(8 * time.Second); time.Now().Before(until); time.Sleep(200 * time.Millisecond) {
				c, err := net.Dial("tcp", b.at)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.WriteString(c, "x")
				t.Cleanup(func() { _ = c.Close() })
				if p, _ := b.Pool(b.in.ID); p.Parts[0].Cluster != "east-a" || p.Parts[0].Out {
					t.Fatalf("it is out: %+v", p.Parts)
				}
			}
		})
	}
}

// TestAClusterThatServesWhatIsOpenIsNotSilent, however long new connections wait.
func TestAClusterThatServesWhatIsOpenIsNotSilent(t *testing.T) {
	port := freePort(t)
	busy := &sync.RWMutex{}
	at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.101"), port)
	l, err := net.Listen("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go acceptAll(l, func(c net.Conn) {
		busy.RLock()
		defer busy.RUnlock()
		_, _ = io.Copy(c, c)
	})
	b := newStreamBed(t, Options{}, StreamOptions{}, nil, &echo{name: "east-a", addr: at}, newEcho(t, "west-a", 102, port))
	c, err := net.Dial("tcp", b.at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	say := func() {
		if _, err := io.WriteString(c, "more\n"); err != nil || readLine(c) != "more" {
			t.Fatalf("the open connection does not go on: %v", err)
		}
	}
	say()
	b.learned(at)
	waits := make(chan struct{})
	go func() { busy.Lock(); close(waits); busy.Unlock() }() // from now on whoever comes waits
	for until := time.Now().Add(4 * time.Second); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		say()
		if p, _ := b.Pool(b.in.ID); p.Parts[0].Cluster != "east-a" {
			t.Fatalf("it is out: %+v", p.Parts)
		}
	}
	select {
	case <-waits:
		t.Error("nobody had to wait")
	default:
	}
}

// TestSilences of targets: "." is an end that was answered promptly, "s" one that was answered late, "-" one that was not, "+" one that was not for long after.
func TestSilences(t *testing.T) {
	for ends, want := range map[string]bool{
		"...---": true, "..---": false, "...--.": false, "...--.---": true, "...---.": false, "...---s": false, "...---....---": true, "...s---": false, "-----": false, "...---+": false,
	} {
		s, now := silences{}, time.Unix(1, 0)
		for _, what := range ends {
			now = now.Add(time.Second)
			if what == '+' {
				now = now.Add(silentFor)
			}
			took := map[rune]time.Duration{'.': time.Millisecond, 's': promptly + 1}[what]
			s.noteEnd(took > 0, max(took, 1), now)
		}
		if s.isSilent() != want {
			t.Errorf("%s: silent is %t", ends, s.isSilent())
		}
	}
	never := silences{}
	for range giveUpAfter {
		never.noteEnd(false, silence, time.Unix(1, 0))
	}
	if !never.isHopeless(time.Unix(2, 0)) || never.isHopeless(time.Unix(2, 0).Add(silentFor)) {
		t.Error("whether an answer is waited for does not follow from the answers before")
	}
}

// TestSilentTargetsCountForHalf, as ejected ones.
func TestSilentTargetsCountForHalf(t *testing.T) {
	port := freePort(t)
	b := newStreamBed(t, Options{}, StreamOptions{}, nil, newEcho(t, "east-a", 101, port), newEcho(t, "west-a", 102, port))
	in := b.in
	at := func(n int) plan.Target {
		return plan.Target{Cluster: in.Offers[n].Cluster, Address: netip.AddrPortFrom(in.Offers[n].Addresses[0], port)}
	}
	in.Health = map[plan.Target]plan.Health{at(0): {Silent: true}}
	if p := plan.DecidePool(in); !p.Parts[1].Out || p.Parts[0].Out {
		t.Errorf("one of two is silent: %+v", p.Parts)
	}
	in.Health[at(1)] = plan.Health{Silent: true}
	if p := plan.DecidePool(in); p.Parts[0].Out || p.Parts[1].Out || len(p.Reasons) == 0 {
		t.Errorf("both are silent: %+v, %v", p.Parts, p.Reasons)
	}
}
