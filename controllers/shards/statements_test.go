package shards

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// finds sets what a replica finds of clusters.
func (f *fleet) finds(name string, found map[string]bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replicas[name].found = found
}

// hears checks what a replica knows of the others' statements.
func (f *fleet) hears(name, want string) {
	f.Helper()
	synctest.Wait()
	if got := fmt.Sprint(f.replicas[name].says.Others()); got != want {
		f.Errorf("%s hears %s, want %s", name, got, want)
	}
}

func TestReplicasSayWhatTheyFind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "a", "b", "c")
		defer f.endAll()
		f.finds("a", map[string]bool{"x": false, "y": true})
		f.finds("b", map[string]bool{"x": true, "y": true})
		time.Sleep(5 * time.Second)
		f.hears("a", `map[b:{"well":["x"]} c:{}]`) // nobody doubts y, and c knows nothing
		f.hears("b", `map[a:{"lost":["x"]} c:{}]`)

		f.finds("a", map[string]bool{"x": true})
		time.Sleep(5 * time.Second)
		f.hears("b", `map[a:{} c:{}]`)
		f.hears("c", `map[a:{} b:{}]`)
	})
}

// A statement is valid while its Lease is, whether or not somebody deletes that. A relist is no sign of life.
func TestAStatementDiesWithItsLease(t *testing.T) {
	now := time.Duration(0)
	s := NewStatements(nil, func() time.Duration { return now })
	renewed := func(version string) {
		l := newReplica(leaseOf("b", 0), DefaultTiming(), map[string]string{StatementAnnotation: `{"well":["x"]}`})
		l.ResourceVersion = version
		s.recordLease(l, DefaultTiming())
	}
	counts := func(want int) {
		t.Helper()
		if got := s.Others(); len(got) != want {
			t.Errorf("after %s: %v, want %d statements", now, got, want)
		}
	}
	renewed("1")
	now = DefaultTiming().Duration - time.Nanosecond
	counts(1)
	renewed("1")
	now = DefaultTiming().Duration
	counts(0)
	renewed("2")
	counts(1)
}

func TestTheDeadSayNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "a", "b", "c")
		defer f.endAll()
		f.finds("a", map[string]bool{"x": false})
		f.finds("b", map[string]bool{"x": true})
		time.Sleep(5 * time.Second)
		f.kill("b")
		time.Sleep(time.Second)
		f.hears("a", `map[b:{"well":["x"]} c:{}]`) // it may be alive
		time.Sleep(DefaultTiming().Duration)
		f.hears("a", `map[c:{}]`)
		f.end("c")
		f.hears("a", `map[]`)
	})
}

// A replica that lost its Lease has a new one, and still one vote.
func TestOneVoteAProcess(t *testing.T) {
	s := NewStatements(nil, func() time.Duration { return 0 })
	says := func(lease, version, statement string) *coordinationv1.Lease {
		l := newReplica(lease, DefaultTiming(), map[string]string{StatementAnnotation: statement})
		l.ResourceVersion = version
		return l
	}
	s.recordLease(says(leaseOf("host-1", 0), "1", `{"lost":["x"]}`), DefaultTiming())
	s.recordLease(says(leaseOf("host-1", 1), "2", `{"well":["x"]}`), DefaultTiming())
	s.forget("federation-system/" + leaseOf("host-1", 0)) // somebody deletes it
	if got := fmt.Sprint(s.Others()); got != `map[host-1:{"well":["x"]}]` {
		t.Errorf("they say %s", got)
	}
	s.recordLease(says(leaseOf("host-1", 1), "3", ""), DefaultTiming()) // as an older version does
	if got := s.Others(); len(got) > 0 {
		t.Errorf("they say %v", got)
	}
}
