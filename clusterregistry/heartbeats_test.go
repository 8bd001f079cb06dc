package clusterregistry

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"federation/apiserver/apis/federation/v1beta1"
)

const oneSilent = "1 of 1 nodes have not renewed their Leases since it returned: n1"

// silent is what the Cluster says of nodes that are waited for, or "".
func (f *fleet) silent(name string) string {
	f.t.Helper()
	c := f.cluster(name).Condition(v1beta1.ClusterNodeHeartbeatsStale)
	if c == nil {
		return ""
	}
	return c.Message
}

// bounce has the cluster away for a moment.
func (f *fleet) bounce(name string, m *fakeMember) {
	f.t.Helper()
	m.set(func() { m.sick = true })
	f.eventuallyReady(name, v1beta1.ReasonClusterNotReady)
	m.set(func() { m.sick = false })
	f.eventuallyReady(name, v1beta1.ReasonClusterReady)
}

func TestNodesThatAreSilentAfterTheReturnAreSaid(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	east.set(func() { east.renewed = time.Now().Add(-time.Minute) })
	f.join("east", east, "good")
	f.eventuallyReady("east", v1beta1.ReasonClusterReady)
	if said := f.silent("east"); said != "" {
		t.Errorf("a cluster that was not away: %s", said)
	}
	f.bounce("east", east)
	if got := f.silent("east"); got != oneSilent {
		t.Errorf("a cluster whose node is silent: %q, want %q", got, oneSilent)
	}
	east.set(func() { east.renewed = time.Now() })
	f.eventually("the node is heard of", func() bool { return strings.HasPrefix(f.silent("east"), "its nodes renew their Leases again") })
	east.set(func() { east.renewed = time.Time{} })
	f.eventually("the silence is over: no node is left", func() bool { return f.silent("east") == "" })
	east.set(func() { east.renewed = time.Now() })
	f.bounce("east", east)
	if said := f.silent("east"); said != "" {
		t.Errorf("a cluster whose node lives: %s", said)
	}
}

func TestNodesAreSilentUntilTheirLeasesCanBeRead(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	f.join("east", east, "good")
	f.eventuallyReady("east", v1beta1.ReasonClusterReady)
	east.set(func() { east.renewed, east.fails = time.Now().Add(-time.Minute), leasesPath })
	f.bounce("east", east)
	if f.silent("east") == "" {
		t.Error("a cluster that cannot say yet whether its nodes live is believed")
	}
	east.set(func() { east.fails = "" })
	f.eventually("the node is known as silent", func() bool { return f.silent("east") == oneSilent })
	east.set(func() { east.forbids = leasesPath })
	f.eventually("a cluster that does not say whether its nodes live counts", func() bool { return f.silent("east") == "" })
}

// TestAWaitForNodesOutlivesTheMember: in both cases the node's renewal is fresh, and no sign that it lived all the time.
func TestAWaitForNodesOutlivesTheMember(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	f.join("east", east, "good")
	f.eventuallyReady("east", v1beta1.ReasonClusterReady)
	east.set(func() { east.renewed = time.Now().Add(-time.Minute) })
	f.bounce("east", east)
	since := f.cluster("east").Condition(v1beta1.ClusterNodeHeartbeatsStale).LastTransitionTime
	east.set(func() { east.renewed = time.Now() })
	first := f.member("east")
	first.cancel(errors.New("taken up anew"))
	f.eventually("another member", func() bool { m, err := f.Member("east"); return err == nil && m != first })
	f.staysSilent(east, since)
}

func TestAWaitForNodesOutlivesTheFederation(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	since := metav1.NewTime(time.Now().Add(-5 * time.Second).Truncate(time.Second))
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1beta1.ClusterStatus{Conditions: []v1beta1.ClusterCondition{
		{Type: v1beta1.ClusterReady, Status: "True", Reason: v1beta1.ReasonClusterReady},
		{Type: v1beta1.ClusterOffline, Status: "False"},
		{Type: v1beta1.ClusterNodeHeartbeatsStale, Status: "True", LastTransitionTime: since, Message: oneSilent},
	}})
	if err != nil {
		t.Fatal(err)
	}
	f.status = status
	east.set(func() { east.renewed = time.Now() })
	f.join("east", east, "good")
	f.member("east")
	f.staysSilent(east, since)
}

// TestAWaitThatAnotherProcessBeganGoesOn: a process that stood still while a cluster was away, and leads then, does not say that its nodes are heard of.
func TestAWaitThatAnotherProcessBeganGoesOn(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	east.set(func() { east.renewed = time.Now() })
	f.join("east", east, "good")
	f.eventuallyReady("east", v1beta1.ReasonClusterReady)
	m := f.member("east")
	since := metav1.NewTime(time.Now().Add(time.Second).Truncate(time.Second))
	f.conditions("east", append(f.cluster("east").Status.Conditions, v1beta1.ClusterCondition{Type: v1beta1.ClusterNodeHeartbeatsStale, Status: "True", LastTransitionTime: since, Message: oneSilent}))
	f.eventually("it knows, too", m.HeartbeatsStale)
	f.waitsStill(east, since)
	f.conditions("east", slices.DeleteFunc(f.cluster("east").Status.Conditions, func(c v1beta1.ClusterCondition) bool { return c.Type == v1beta1.ClusterNodeHeartbeatsStale }))
	f.eventually("what the other process says is over, is", func() bool { return !m.HeartbeatsStale() })
	if said := f.silent("east"); said != "" {
		t.Errorf("and it says %s", said)
	}
}

// conditions writes the conditions of a Cluster as another process does.
func (f *fleet) conditions(name string, conditions []v1beta1.ClusterCondition) {
	f.t.Helper()
	status := f.cluster(name).Status
	status.Conditions = conditions
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		f.t.Fatal(err)
	}
	f.change(name, func(c *unstructured.Unstructured) { c.Object["status"] = u })
}

// TestNodesAreLookedAtWhenAProcessStarts: a cluster that joined before may have lost its power while no process could write that.
func TestNodesAreLookedAtWhenAProcessStarts(t *testing.T) {
	f, s := newFleet(t), &said{}
	f.Add(s)
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1beta1.ClusterStatus{Conditions: []v1beta1.ClusterCondition{
		{Type: v1beta1.ClusterReady, Status: "True", Reason: v1beta1.ReasonClusterReady},
	}})
	if err != nil {
		t.Fatal(err)
	}
	f.status = status
	east, west := newFakeMember(t), newFakeMember(t)
	east.set(func() { east.renewed = time.Now().Add(-time.Minute) })
	f.join("east", east, "good")
	f.eventually("the node of east is known as silent", func() bool { return f.silent("east") == oneSilent })
	west.set(func() { west.renewed = time.Now() })
	f.join("west", west, "good")
	f.eventually("the node of west lives", func() bool { m, err := f.Member("west"); return err == nil && !m.HeartbeatsStale() })
	f.eventually("nothing is said of the node of west", func() bool { return f.silent("west") == "" })
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.first, []bool{true, true}) {
		t.Errorf("silent from the first: %v, want both", s.first)
	}
}

// waitsStill checks that some checks later nodes are waited for still, since then.
func (f *fleet) waitsStill(m *fakeMember, since metav1.Time) {
	f.t.Helper()
	checks := len(m.seen("/healthz"))
	f.eventually("more checks", func() bool { return len(m.seen("/healthz")) > checks+3 })
	c := f.cluster("east").Condition(v1beta1.ClusterNodeHeartbeatsStale)
	if c == nil || !c.LastTransitionTime.Equal(&since) {
		f.t.Errorf("condition %+v, want NodeHeartbeatsStale since %v", c, since)
	}
}

// staysSilent checks that nodes are waited for still, and only as long as there is one.
func (f *fleet) staysSilent(m *fakeMember, since metav1.Time) {
	f.t.Helper()
	f.waitsStill(m, since)
	m.set(func() { m.renewed = time.Time{} })
	f.eventually("the silence is over: no node is left", func() bool { return f.silent("east") == "" })
}

// said is what HeartbeatsStale says when a member is taken up.
type said struct {
	mu    sync.Mutex
	first []bool
	last  *Member
}

func (s *said) Engage(_ context.Context, m *Member) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first, s.last = append(s.first, m.HeartbeatsStale()), m
	return nil
}

// Whoever works in a member that has returned knows from the first moment that its nodes may be silent, whatever its Cluster says so far.
func TestAMemberThatReturnsIsSilentFromTheFirst(t *testing.T) {
	f, east, s := newFleet(t), newFakeMember(t), &said{}
	f.Add(s)
	f.join("east", east, "good")
	f.eventuallyReady("east", v1beta1.ReasonClusterReady)
	f.bounce("east", east) // its nodes live
	f.eventually("it has been taken up twice, silent the second time until its nodes were looked at", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.Equal(s.first, []bool{false, true}) && !s.last.HeartbeatsStale()
	})
	east.set(func() { east.renewed = time.Now().Add(-time.Minute) })
	f.bounce("east", east)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.first, []bool{false, true, true}) || !s.last.HeartbeatsStale() {
		t.Errorf("its nodes are silent, and it said %v, and then %v", s.first, s.last.HeartbeatsStale())
	}
}
