package fleettest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// A core of the fleet is a member that is well, with the federation's processes. Whatever is wrong with the rest, it gets all that
// it is to have within liveWithin, and deletes end.
const (
	liveWithin = 3 * time.Minute
	liveAgain  = 20 * time.Second // something may have been decided just now
	// movesWithin is how long it takes at most until a lost cluster is failed over: twice its grace period, if it was held first.
	movesWithin = 2 * time.Minute
)

// checkCore carries out core CLUSTER: time passes; then it must have all that it is to have, however sick the others are.
func checkCore(p *player, args []string) error {
	if err := need(args, 1, "core CLUSTER"); err != nil {
		return err
	}
	m, err := p.find(args[0])
	if err != nil {
		return err
	}
	p.tally.check("a core lives while the rest is sick")
	p.Pass(liveWithin)
	broken := notFailedOver(p.Fleet, time.Now())
	first := missingIn(p.Fleet, m)
	if len(first) == 0 {
		return errors.Join(broken...)
	}
	p.Pass(liveAgain)
	for _, how := range missingIn(p.Fleet, m) {
		if slices.Contains(first, how) {
			broken = append(broken, against("a core lives while the rest is sick", "%s", how))
		}
	}
	return errors.Join(broken...)
}

const failedOver = "who is lost is failed over"

// notFailedOver checks that a cluster that has been lost for long is failed over if it is the only one. One that was drained and switched
// off holds up nobody.
func notFailedOver(f *Fleet, now time.Time) []error {
	f.mu.Lock()
	defer f.mu.Unlock()
	gone := ""
	for name, m := range f.members {
		c := f.clusters.named(name)
		if m.alias {
			continue // it is lost with the other
		}
		if c == nil || m.Wire.Fault() != m.Wire.ForAll() || now.Sub(m.faultSince) < movesWithin {
			return nil
		}
		switch {
		case m.wellFor(now) > 0 || c.OutOfService() == v1beta1.Drained && drainedBefore(c, lostSince(c, m)):
		case !lost(m.Wire.Fault()) || gone != "":
			return nil // why it is away, or that another is, may hold it
		default:
			gone = name
		}
	}
	if gone == "" {
		return nil
	}
	f.tally.check(failedOver)
	if phase := f.clusters.named(gone).Phase(); phase != v1beta1.PhaseFailedOver {
		return []error{against(failedOver, "%s is lost for %s, no other is, and it is %s", gone, now.Sub(f.members[gone].faultSince), phase)}
	}
	return nil
}

// lostSince returns since when a member is lost: that it was too slow before it died counts.
func lostSince(c *v1beta1.Cluster, m *Member) time.Time {
	if ready := c.Condition(v1beta1.ClusterReady); ready != nil && ready.Status != corev1.ConditionTrue && ready.LastTransitionTime.Time.Before(m.faultSince) {
		return ready.LastTransitionTime.Time
	}
	return m.faultSince
}

// drainedBefore reports whether the last taint of a drain is older than a loss, as far as dates to the second say so.
func drainedBefore(c *v1beta1.Cluster, loss time.Time) bool {
	return !slices.ContainsFunc(c.Spec.Taints, func(t corev1.Taint) bool {
		return t.TimeAdded != nil && !t.TimeAdded.Time.Before(loss.Add(-time.Second))
	})
}

// missingIn is what a member should have by now, and what should be gone.
func missingIn(f *Fleet, m *Member) (out []string) {
	c := f.clusters.named(m.Name)
	if c == nil || !c.IsReady() {
		return []string{m.Name + " is well, and not ready"}
	}
	for _, r := range f.Federation.Resources() {
		for _, u := range f.Federation.List(r.GroupVersionResource, nil) {
			there := m.API.Get(r.GroupVersionResource, u.GetNamespace(), u.GetName())
			switch wanted, ok := wantedIn(f, r, u); {
			case !federated(r, u) || time.Since(u.GetCreationTimestamp().Time) < liveWithin || isExcused(f, m, r, u, there):
			case u.GetDeletionTimestamp() != nil:
				if time.Since(u.GetDeletionTimestamp().Time) >= liveWithin && !anyRefuses(f, r.Resource, u.GetName()) {
					out = append(out, fmt.Sprintf("%s %s is still being deleted, with finalizers %q", r.Resource, u.GetName(), u.GetFinalizers()))
				}
			case !ok:
				out = append(out, fmt.Sprintf("%s %s has no placement", r.Resource, u.GetName()))
			case wanted[m.Name] != 0 && there == nil && v1beta1.JobEnd(u) == "":
				out = append(out, fmt.Sprintf("%s %s is missing in %s", r.Resource, u.GetName(), m.Name))
			}
		}
	}
	return out
}

// anyRefuses reports whether a member answers, and does not let go of an object, or may be reached by some processes only.
func anyRefuses(f *Fleet, resource, name string) bool {
	return slices.ContainsFunc(f.Members(), func(m *Member) bool {
		return m.Wire.Refuses(resource, name) || m.Wire.Fault() != m.Wire.ForAll()
	})
}
