package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

func TestPace(t *testing.T) {
	for _, c := range []struct {
		name   string
		shares []Share // the first one is decided
		asked  int64
		want   int64
	}{
		{"grows at once", []Share{{Applied: 5, Ready: 5, Target: 20}, {Applied: 25, Ready: 25, Target: 10}}, 30, 20},
		{"nothing is ready elsewhere yet", []Share{{Applied: 20, Ready: 20, Target: 5}, {Applied: 25, Ready: 10, Target: 25}}, 30, 20},
		{"what is ready elsewhere makes up for it", []Share{{Applied: 20, Ready: 20, Target: 5}, {Applied: 25, Ready: 17, Target: 25}}, 30, 13},
		{"all of it", []Share{{Applied: 20, Ready: 20, Target: 5}, {Applied: 25, Ready: 25, Target: 25}}, 30, 5},
		{"what is not ready goes at once", []Share{{Applied: 20, Ready: 12, Unready: 8, Spare: 8, Target: 5}, {Applied: 25, Made: 25, Ready: 3, Target: 25}}, 30, 12},
		{"not those that are not even made elsewhere", []Share{{Applied: 6, Made: 6, Unready: 6, Spare: 6}, {Applied: 12, Made: 8, Ready: 8, Target: 12}}, 12, 4},
		{"nor before all is made", []Share{{Applied: 6, Made: 6, Unready: 6, Spare: 6}, {Applied: 6, Made: 6, Ready: 6, Target: 12}}, 12, 6},
		{"nor what is not made here, either", []Share{{Applied: 6, Made: 1, Unready: 6, Spare: 6}, {Applied: 6, Made: 6, Ready: 6, Target: 12}}, 12, 1},
		{"the user asks for less of what is made nowhere", []Share{{Applied: 20, Made: 20, Unready: 20, Spare: 20, Target: 7}, {Applied: 10, Target: 3}}, 10, 7},
		{"the user asks for less", []Share{{Applied: 20, Ready: 20, Target: 7}, {Applied: 10, Ready: 10, Target: 3}}, 10, 7},
		{"nothing fits elsewhere: nothing is removed", []Share{{Applied: 30, Ready: 30, Target: 0}}, 30, 30},
		{"leaves when it may", []Share{{Applied: 20, Ready: 20, Target: 0}, {Applied: 30, Ready: 30, Target: 30}}, 30, 0},
		{"which pods go first is not known", []Share{{Applied: 20, Ready: 12, Unready: 8, Target: 5}, {Applied: 25, Ready: 20, Target: 25}}, 30, 18},
		{"and does not matter where all may go", []Share{{Applied: 20, Ready: 12, Unready: 8, Target: 5}, {Applied: 31, Ready: 30, Target: 31}}, 30, 5},
		{"nor where there is nothing to wait for", []Share{{Applied: 20, Ready: 10, Unready: 10, Target: 10}}, 10, 10},
	} {
		if got := Pace(c.shares, 0, c.asked); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestAskedFor(t *testing.T) {
	s := Source{
		Kind:   kind(t, "Deployment"),
		Object: &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(27)}}},
	}
	for _, c := range []struct {
		name   string
		placed map[string]int64
		shares []Share
		want   int64
	}{
		{"by the user", map[string]int64{"b": 27}, []Share{{Applied: 8}, {Applied: 8, Placed: 27, Target: 27}}, 27},
		{"by an autoscaler, which wants fewer", map[string]int64{"b": 27}, []Share{{Applied: 8}, {Applied: 8, Placed: 27, Target: 8, Autoscaled: true}}, 8},
		{"by one here, and by the placement there", map[string]int64{"a": 14, "b": 13}, []Share{{Applied: 8, Placed: 14, Target: 8, Autoscaled: true}, {Placed: 13, Target: 13}}, 21},
		{"never more than by the user", map[string]int64{"a": 27}, []Share{{Applied: 40, Placed: 27, Target: 40, Autoscaled: true}}, 27},
		{"by the placement where an autoscaler goes", map[string]int64{"a": 9, "b": 18}, []Share{{Applied: 3, Placed: 9, Target: 3, Autoscaled: true, Unscaled: true}, {Applied: 20, Placed: 18, Target: 18}}, 27},
		{"by the placement where nobody knows", map[string]int64{"b": 17, "c": 10}, []Share{{Applied: 8}, {Applied: 8, Placed: 17, Target: 8, Autoscaled: true}}, 18},
	} {
		s.Placement = &v1beta1.Placement{Clusters: c.placed}
		if got := s.AskedFor(c.shares); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// simulated is a cluster with its real and its reported state.
type simulated struct {
	applied, target int64
	ready, total    int64 // the real pods
	seen, seenTotal int64 // the pods in the last status
	carried         bool  // the status is for the last applied number
	writing         int64 // the number of a write in flight; -1: none
	ceiling         int64 // at most so many ready ones count, from the decision to shrink until it is carried out; -1: no limit
	asked           int64 // the least that was requested when it got a number that it has yet to carry out
	away, never     bool  // unreachable; pods never get ready
}

type simulation struct {
	r        *rand.Rand
	decide   func(s *simulation, own int) int64 // the number that a cluster should have now
	clusters []*simulated
	asked    int64
	log      []string
	broken   string // how the law was broken, or that the move does not end
}

func (s *simulation) note(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

// shares returns what the engine knows.
func (s *simulation) shares(own int) (shares []Share, at int) {
	for i, c := range s.clusters {
		if i == own {
			at = len(shares)
		}
		if c.away {
			continue
		}
		c.settles()
		ready := min(c.seen, c.applied)
		unready := c.applied - ready
		if c.ceiling >= 0 {
			ready = min(ready, c.ceiling)
		}
		shares = append(shares, Share{Applied: c.applied, Ready: ready, Unready: unready, Spare: unready, Made: c.seenTotal, Target: c.target})
	}
	return shares, at
}

// settles removes the limit once the last number is carried out, by its status.
func (c *simulated) settles() {
	if c.writing < 0 && c.carried && c.seenTotal <= c.applied {
		c.ceiling = -1
	}
}

// act syncs one cluster. The decision is written a while later.
func (s *simulation) act(i int) {
	c := s.clusters[i]
	if c.away || c.writing >= 0 {
		return
	}
	s.status(i) // a pod of its own that has only just become ready cannot be known, and is not tested
	next := s.decide(s, i)
	if next == c.applied {
		return
	}
	s.note("cluster %d: %d -> %d, to be %d", i, c.applied, next, c.target)
	if next < c.applied && (c.ceiling < 0 || next < c.ceiling) {
		c.ceiling = next
	}
	c.writing, c.asked = next, min(c.asked, s.asked)
}

// land lets the write to a cluster arrive.
func (s *simulation) land(i int) {
	if c := s.clusters[i]; c.writing >= 0 && !c.away {
		s.note("cluster %d: has %d", i, c.writing)
		c.applied, c.writing, c.carried = c.writing, -1, false
	}
}

// readyInAll counts the ready pods that are known to be: one that just became ready cannot be known.
func (s *simulation) readyInAll() (n int64) {
	for _, c := range s.clusters {
		if !c.away {
			n += min(c.ready, c.seen)
		}
	}
	return n
}

// carry does what a member's controllers do: create and delete pods, those that are not ready first. It checks the law.
func (s *simulation) carry(i int) {
	c, before := s.clusters[i], s.readyInAll()
	c.total = c.applied
	c.ready = min(c.ready, c.total)
	if after := s.readyInAll(); after < min(before, c.asked, s.asked) {
		s.breaks("cluster %d: %d of %d are ready, there were %d", i, after, s.asked, before)
	}
	if c.writing < 0 {
		c.asked = math.MaxInt64
	}
	s.note("cluster %d carries out %d: %d ready", i, c.applied, c.ready)
}

// status updates a member's reported state.
func (s *simulation) status(i int) {
	c := s.clusters[i]
	c.seen, c.seenTotal, c.carried = c.ready, c.total, c.total == c.applied
}

func (s *simulation) retarget() {
	if s.r.IntN(3) == 0 {
		s.asked = s.r.Int64N(40)
	}
	left := s.asked
	for i, c := range s.clusters {
		c.target = s.r.Int64N(left + 1)
		if i == len(s.clusters)-1 {
			c.target = left
		}
		left -= c.target
	}
	for _, c := range s.clusters {
		if c.asked != math.MaxInt64 { // what others were allowed meanwhile was based on this
			c.asked = min(c.asked, s.asked)
		}
	}
	s.note("asked for %d", s.asked)
}

// fault reports whether a fault may happen now: replicas that it takes while a member is about to shrink are its own
// fault.
func (s *simulation) fault() bool {
	return !slices.ContainsFunc(s.clusters, func(c *simulated) bool { return c.total > c.applied || c.writing >= 0 && c.writing < c.total })
}

func (s *simulation) step() {
	i := s.r.IntN(len(s.clusters))
	c := s.clusters[i]
	what := s.r.IntN(24)
	if (what == 1 || what == 3) && !s.fault() {
		return
	}
	switch what {
	default:
		s.act(i)
	case 0:
		s.retarget()
	case 1:
		c.away = !c.away
		s.status(i)
		s.note("cluster %d away: %v", i, c.away)
	case 2:
		c.never = !c.never
	case 3: // a pod fails, which is known at once
		c.ready = max(0, c.ready-1)
		s.status(i)
	case 4, 5, 6, 7:
		s.carry(i)
	case 8, 9, 10, 11:
		if !c.never { // of pods that are about to be deleted, none gets ready: that race would last milliseconds
			stay := c.applied
			if c.writing >= 0 {
				stay = min(stay, c.writing)
			}
			c.ready = max(c.ready, min(c.total, stay, c.ready+s.r.Int64N(5)))
		}
	case 15, 16, 17, 18, 19:
		s.land(i)
	case 12, 13, 14:
		s.status(i)
		s.note("cluster %d: status %d of %d ready", i, c.seen, c.seenTotal)
	}
}

// settle lets everything get ready, and checks that the move ends.
func (s *simulation) settle() {
	for range 100 {
		for i, c := range s.clusters {
			c.away, c.never = false, false
			s.act(i)
			s.land(i)
			s.carry(i)
			c.ready = c.total
			s.status(i)
		}
	}
	for i, c := range s.clusters {
		if c.applied != c.target {
			s.breaks("cluster %d has %d for ever, it is to have %d", i, c.applied, c.target)
		}
	}
}

func (s *simulation) breaks(format string, args ...any) {
	if s.broken == "" {
		s.broken = fmt.Sprintf(format, args...) + "\n" + strings.Join(s.log, "\n")
	}
}

// simulate runs one random move, and returns how it breaks the law, or "".
func simulate(seed uint64, decide func(s *simulation, own int) int64) string {
	s := &simulation{r: rand.New(rand.NewPCG(seed, 1)), decide: decide, asked: 20, log: []string{fmt.Sprintf("seed %d", seed)}}
	for range 2 + s.r.IntN(5) {
		s.clusters = append(s.clusters, &simulated{ceiling: -1, writing: -1, asked: math.MaxInt64})
	}
	s.retarget()
	for range 300 {
		s.step()
	}
	s.settle()
	return s.broken
}

// The law holds at every step of a move, whatever happens to pods and clusters, and the move ends.
func TestTheLawInRandomMoves(t *testing.T) {
	for seed := range uint64(2000) {
		if broken := simulate(seed, func(s *simulation, own int) int64 {
			shares, at := s.shares(own)
			return Pace(shares, at, s.asked)
		}); broken != "" {
			t.Fatal(broken)
		}
	}
}
