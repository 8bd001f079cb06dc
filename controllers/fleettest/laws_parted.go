package fleettest

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// half is the law about clusters that some processes reach and others do not (ADR 87).
const half = "nobody is moved off whom half of the processes reach"

// noteReached keeps since when at least half of the processes, but not all, reach each member with which nothing else is wrong. It is called with the fleet locked.
func (l *moveLaws) noteReached(f *Fleet, now time.Time) {
	for name, m := range f.members {
		if m.Wire.standsStill() { // a process is paused, though its own API may be well again
			f.disturbed = now
		}
		off := m.Wire.cutOff(f.processes.count)
		switch reached := m.Wire.ForAll() == Well && !m.slow() && !m.nodes.areSilent() && off > 0 && 2*off <= f.processes.count; {
		case !reached:
			delete(l.reached, name)
		case l.reached[name].IsZero():
			l.reached[name] = now
		}
	}
}

// movedOffReached checks that nothing is moved off a cluster that at least half of the processes reach, while these hear each other. It is
// called with the fleet locked.
func (l *moveLaws) movedOffReached(f *Fleet, m *Member, was, is v1beta1.FailoverPhase, now time.Time) []error {
	since := l.reached[m.Name]
	if since.IsZero() {
		return nil
	}
	f.tally.check(half)
	if is != v1beta1.PhaseFailedOver || was == is || was == v1beta1.PhaseFailingBack || now.Sub(since) < f.Settings.Grace || now.Sub(f.disturbed) < f.Settings.Grace || f.uplinks.anySick() {
		return nil
	}
	return []error{against(half, "%s is reached by all but %d of %d for %s, and now it is %s, after %s", m.Name, m.Wire.cutOff(f.processes.count), f.processes.count, now.Sub(since), is, was)}
}

// staleInDNS is how long the addresses of a cluster may be given out whose endpoints are gone, if nobody can tell who should.
const staleInDNS = 45 * time.Second

// checkEnded checks that a name does not have addresses of a cluster without a ready pod while another serves: also if the process that
// holds the Service cannot see it. It is called with the fleet locked.
func (d *dnsLaws) checkEnded(f *Fleet, u *unstructured.Unstructured, now time.Time) (broken []error) {
	f.tally.check("DNS does not point at what has ended")
	name := globalName(u)
	for _, m := range f.members {
		at := serviceIn{u.GetUID(), m.Name}
		if m.alias || m.Wire.ForAll() != Well || m.slow() || m.nodes.areSilent() || !isReachable(f, m) || servedIn(f, m, u, now).ready {
			delete(d.ended, at) // the time counts from when the federation reaches it, also after a drill
			continue
		}
		if d.ended[at].IsZero() {
			d.ended[at] = now
		}
		if now.Sub(d.ended[at]) < staleInDNS || now.Sub(f.disturbed) < staleInDNS || !m.loadBalancers.haveHad(d.given[name]) || clustersCutOff(f, now)[m.Name] {
			continue
		}
		if other := d.servingMember(f, u, now); other != "" {
			d.ended[at] = now // said once
			broken = append(broken, against("DNS does not point at what has ended", "%s has no ready pod of it for %s, %s serves, and %s has %s", m.Name, staleInDNS, other, name, d.given[name]))
		}
	}
	return broken
}
