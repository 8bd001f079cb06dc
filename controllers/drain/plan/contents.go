package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
	failoverplan "federation/controllers/failover/plan"
)

// Contents is what is known of a cluster.
type Contents struct {
	// Objects are those that are placed, or have a copy, there.
	Objects []Object
	// Unknown is why it is unknown what runs there, or "".
	Unknown string
}

// Object is an object whose replicas are divided, in one cluster.
type Object struct {
	Kind, Namespace, Name string
	// Placed are the replicas that are placed there, Current those that the copy asks for, Ready those of them that are
	// ready.
	Placed, Current, Ready int64
	// Stays: its policy tolerates Taint.
	Stays bool
	// Finished: it is a Job that has ended, as a whole or its copy. Nothing of it runs, or will be ready, any more.
	Finished bool
	// Message is why clusters are not as desired for it, or "".
	Message string
}

// String returns KIND NAMESPACE/NAME.
func (o *Object) String() string { return o.Kind + " " + o.Namespace + "/" + o.Name }

// IsLost reports whether failover has given up what ran in a cluster: it has not been ready for longer than the grace
// period, or never was. A cluster that answers and rejects the federation is not lost.
func IsLost(c *v1beta1.Cluster) bool {
	ready := c.Condition(v1beta1.ClusterReady)
	if c.IsReached() || ready != nil && failoverplan.Unclear(ready.Reason) {
		return false
	}
	return c.Status.Failover == nil || c.Phase() == v1beta1.PhaseFailedOver || c.Phase() == v1beta1.PhaseFailoverSuspended
}

// left returns what a drain waits for, the largest first.
func (c *Contents) left() []Object {
	return c.largest(func(o *Object) bool {
		return !o.Stays && !o.Finished && (o.Placed != 0 || o.Current != 0 || o.Ready != 0)
	})
}

// missing returns what the undoing of a drain waits for, the largest first.
func (c *Contents) missing() []Object {
	return c.largest(func(o *Object) bool { return !o.Finished && o.Ready < o.Placed })
}

func (c *Contents) largest(of func(*Object) bool) (all []Object) {
	for i := range c.Objects {
		if of(&c.Objects[i]) {
			all = append(all, c.Objects[i])
		}
	}
	slices.SortFunc(all, func(a, b Object) int {
		return cmp.Or(cmp.Compare(max(b.Placed, b.Current), max(a.Placed, a.Current)), cmp.Compare(a.String(), b.String()))
	})
	return all
}

// placement identifies what is placed in the cluster.
func (c *Contents) placement() string {
	var words []string
	for i := range c.Objects {
		if o := &c.Objects[i]; o.Placed > 0 {
			words = append(words, fmt.Sprint(o, o.Placed))
		}
	}
	slices.Sort(words)
	return strings.Join(words, ",")
}

// Steady is since when the contents of a cluster have been as a drain, or its undoing, waits for. The zero value is for a
// cluster that has not been looked at.
type Steady struct {
	phase     v1beta1.DrainPhase
	placement string
	since     time.Time
}

// observe notes a look at a cluster. It returns for how long it has been as phase wants it; negative if it is not.
func (s *Steady) observe(phase v1beta1.DrainPhase, c *Contents, now time.Time) time.Duration {
	is := c.Unknown == "" && len(c.left()) == 0
	placement := ""
	if phase == v1beta1.DrainReturning {
		is, placement = len(c.missing()) == 0, c.placement()
	}
	if !is {
		*s = Steady{}
		return -1
	}
	if s.phase != phase || s.placement != placement || s.since.IsZero() {
		*s = Steady{phase, placement, now}
	}
	return now.Sub(s.since)
}
