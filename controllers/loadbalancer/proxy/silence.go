package proxy

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// What takes connections may hang all the same, for the kernel takes them for it. Of a server whose protocol is not known only one thing can be asked that
// nearly all answer: when a client ends its side of a connection, they end theirs. One that has done so promptly for some checks, and does so no more, hangs or is
// overloaded. New connections go elsewhere then. Open ones stay, for their server may only be slow.
const (
	// promptly is how soon an end must be answered to be counted on. After promptAfter of them in a row it is missed.
	promptly, promptAfter = 250 * time.Millisecond, 3
	// silentAfter ends in a row that are not answered within the time of silence make a target silent, for at most silentFor: it may be another server by now.
	silentAfter, silentFor = 3, time.Minute
	// After giveUpAfter ends that were never answered one is waited for each silentFor only.
	giveUpAfter = 5
	// maxLookedAt bounds the open connections that it is looked at whether the target has said something.
	maxLookedAt = 100
)

// silences are what is known of how a target answers ends. The target's lock guards it.
type silences struct {
	// prompt and missed count ends in a row.
	prompt, missed int
	// silentSince is zero if it is not silent. waited is when an answer was waited for last.
	silentSince, waited time.Time
}

func (s *silences) isSilent() bool { return !s.silentSince.IsZero() }

// mayBeSilent reports whether one more check should tell soon.
func (s *silences) mayBeSilent() bool {
	return s.missed > 0 && s.prompt >= promptAfter && !s.isSilent()
}

// isHopeless reports whether it is not worth while to wait for an answer.
func (s *silences) isHopeless(now time.Time) bool {
	return s.prompt == 0 && s.missed >= giveUpAfter && now.Sub(s.waited) < silentFor
}

// noteEnd takes in whether an end was answered, and after which time.
func (s *silences) noteEnd(answered bool, took time.Duration, now time.Time) {
	s.waited = now
	switch {
	case answered && took <= promptly:
		*s = silences{prompt: s.prompt + 1, waited: now}
	case answered, s.isSilent() && now.Sub(s.silentSince) > silentFor:
		*s = silences{waited: now}
	default:
		if s.missed++; s.missed >= silentAfter && s.prompt >= promptAfter && !s.isSilent() {
			s.silentSince = now
		}
	}
}

// hearEnd ends a connection, on which nothing was said, and waits for the target to end it, too.
func (t *target) hearEnd(c *net.TCPConn) {
	began := time.Now()
	t.mu.Lock()
	hopeless := t.isHopeless(began)
	t.mu.Unlock()
	if hopeless {
		return
	}
	_ = c.CloseWrite() // fails only for what is closed
	_ = c.SetReadDeadline(time.Now().Add(silence))
	_, err := c.Read(make([]byte, 1))
	now, answered := time.Now(), !isTimeout(err) // a word of a server that speaks first is as good
	t.mu.Lock()
	before := t.isSilent()
	if answered || !t.speaks() {
		t.noteEnd(answered, now.Sub(began), now)
	}
	after := t.isSilent()
	t.mu.Unlock()
	if before == after {
		return
	}
	t.proxy.pools.decideOf(t)
	why := ""
	if after {
		why = "it takes connections, and says nothing"
		ejections.WithLabelValues(t.Cluster).Inc()
	}
	t.proxy.Changed(t.Target, why)
}

// speaks reports whether something came from the target lately, by some open connection. The caller holds the lock.
func (t *target) speaks() bool {
	looked := 0
	for x := range t.streams {
		if looked++; looked > maxLookedAt {
			return false
		}
		raw, err := x.server.SyscallConn()
		if err != nil {
			continue
		}
		var info *unix.TCPInfo
		if raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }) == nil && err == nil && info.Bytes_received > 0 &&
			time.Duration(info.Last_data_recv)*time.Millisecond < silence {
			return true
		}
	}
	return false
}
