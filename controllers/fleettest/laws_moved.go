package fleettest

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/fleettest/memapi"
)

// moveLaws watch over who may have what: nobody is moved off without need.
type moveLaws struct {
	phases  map[string]v1beta1.FailoverPhase
	reached map[string]time.Time             // since when half of the processes, but not all, reach a member
	emptied map[string]time.Time             // when a cluster was last known as one to be empty
	counts  map[types.UID]int                // how often the numbers of a placement changed, by the UID of the object
	placed  map[types.UID]*v1beta1.Placement // the latest, by the UID of the object
}

func newMoveLaws() moveLaws {
	return moveLaws{phases: map[string]v1beta1.FailoverPhase{}, reached: map[string]time.Time{}, emptied: map[string]time.Time{}, counts: map[types.UID]int{}, placed: map[types.UID]*v1beta1.Placement{}}
}

// check checks what a write says of who may have what. It is called with the fleet locked.
func (l *moveLaws) check(f *Fleet, r memapi.Request, now time.Time) []error {
	if r.Resource == v1beta1.ClustersResource {
		return l.movedOff(f, r.Sent, now)
	}
	if u := f.Federation.Get(r.Resource, r.Namespace, r.Name); u != nil && r.Subresource == "" {
		return l.count(f, u, now)
	}
	return nil
}

const wellStay = "nobody is moved off who is well"

// noticed is how soon each process knows that a member is well again.
const noticed = 10 * time.Second

// movedOff checks that nothing is moved off a cluster that has been well for a grace period, unless it was not yet known to be well when the
// write was sent: nobody can call back what is on its way. It is called with the fleet locked.
func (l *moveLaws) movedOff(f *Fleet, sent, now time.Time) (broken []error) {
	for name, m := range f.members {
		c := f.clusters.named(name)
		if c == nil {
			delete(l.phases, name)
			continue
		}
		f.tally.check(wellStay)
		before, is := l.phases[name], c.Phase()
		l.phases[name] = is
		if is == v1beta1.PhaseFailedOver && before != is && before != v1beta1.PhaseFailingBack && m.wellFor(now) >= f.Settings.Grace && m.wellFor(sent) >= noticed {
			broken = append(broken, against(wellStay, "%s is well for %s, and now it is %s, after %s", name, m.wellFor(now), is, before))
		}
		broken = append(broken, l.movedOffReached(f, m, before, is, now)...)
	}
	return broken
}

// toBeEmpty reports whether a cluster was lost, and comes back by steps, or somebody wants it empty.
func toBeEmpty(c *v1beta1.Cluster) bool {
	p := c.Phase()
	return p == v1beta1.PhaseFailedOver || p == v1beta1.PhaseFailingBack || len(c.Spec.Taints) > 0
}

// noteEmptied keeps when each cluster was last one to be empty, as the processes know it: while the API is sick they do not hear that it no
// longer is. It is called with the fleet locked.
func (l *moveLaws) noteEmptied(f *Fleet, now time.Time) {
	sick := f.uplinks.anySick()
	for name := range f.members {
		if c := f.clusters.named(name); c != nil && toBeEmpty(c) || sick && now.Sub(l.emptied[name]) < noticed {
			l.emptied[name] = now
		}
	}
}

// movedHome checks a placement that has changed in the same way.
func (l *moveLaws) movedHome(f *Fleet, object string, before, after *v1beta1.Placement, now time.Time) (broken []error) {
	if wantsElse(before, after) {
		return nil
	}
	for name, n := range after.Home {
		m, c := f.members[name], f.clusters.named(name)
		if m == nil || c == nil || after.Clusters[name] > 0 || before.Clusters[name] == 0 || n == 0 || before.Home[name] >= n || m.wellFor(now) < f.Settings.Grace {
			continue
		}
		if toBeEmpty(c) || now.Sub(l.emptied[name]) < noticed {
			continue
		}
		broken = append(broken, against(wellStay, "%s: %s is well for %s, and its %d replicas are taken away: before %s, now %s", object, name, m.wellFor(now), before.Clusters[name], before, after))
	}
	return broken
}

const volumesStay = "what has volumes stays with them"

// leftVolumes checks that no replicas with volumes are moved off a cluster because it is lost, unless their policy says so: elsewhere they
// would start on empty volumes.
func leftVolumes(f *Fleet, u *unstructured.Unstructured, before, after *v1beta1.Placement) (broken []error) {
	if templates, _, _ := unstructured.NestedSlice(u.Object, "spec", "volumeClaimTemplates"); len(templates) == 0 {
		return nil
	}
	f.tally.check(volumesStay)
	if policy := f.Federation.Get(v1beta1.PoliciesResource, u.GetNamespace(), after.Policy); policy != nil && valueAt(policy, "spec.failover") != "none" {
		return nil
	}
	if wantsElse(before, after) || goesHome(before, after) {
		return nil
	}
	for name, n := range before.Clusters {
		if c := f.clusters.named(name); c != nil && c.Phase() == v1beta1.PhaseFailedOver && len(c.Spec.Taints) == 0 && after.Clusters[name] < n {
			broken = append(broken, against(volumesStay, "%s: %s is lost, and of its %d replicas %d are moved away", u.GetName(), name, n, n-after.Clusters[name]))
		}
	}
	return broken
}

// wantsElse reports whether somebody asks for fewer replicas, or for other clusters, than when a placement was decided: what that takes away
// may be taken away in the same decision as what a loss does.
func wantsElse(before, after *v1beta1.Placement) bool {
	return before.Inputs != after.Inputs || replicasIn(after) < replicasIn(before)
}

// goesHome reports whether no cluster gets more than what it had before it was drained or lost: whoever has it undrained asks for that.
func goesHome(before, after *v1beta1.Placement) bool {
	for name, n := range after.Clusters {
		if n > before.Clusters[name] && n > before.Home[name] {
			return false
		}
	}
	return true
}

// replicasIn is how many replicas a placement is of.
func replicasIn(p *v1beta1.Placement) int64 {
	sum := p.Unschedulable
	for _, n := range p.Clusters {
		sum += n
	}
	return sum
}

// wellFor is for how long nothing has been wrong with a member.
func (m *Member) wellFor(now time.Time) time.Duration {
	if m.Wire.Fault() != Well || m.slow() || m.fault != m.condition() { // the last: it has just become well
		return 0
	}
	return now.Sub(m.faultSince)
}
