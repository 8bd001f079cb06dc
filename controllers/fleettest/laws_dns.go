package fleettest

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
	failoverplan "federation/controllers/failover/plan"
	"federation/dnsprovider"
)

// dnsLaws watch over the zone at each instant.
type dnsLaws struct {
	applied int
	given   map[string][]string // addresses by name
	// pods and serving are since when a member that can be reached has ready pods of a Service, and gives it an address besides.
	pods, serving map[serviceIn]time.Time
	// ended is since when a member that some process reaches has none.
	ended map[serviceIn]time.Time
	// failedOver is since when a cluster is.
	failedOver map[string]time.Time
	// held is until when the addresses of a lost member stayed because most were away.
	held map[string]time.Time
}

// neverEmpty is the law about names without addresses.
const neverEmpty = "DNS is not empty while a cluster has ready pods"

// serviceIn is a Service in a member.
type serviceIn struct {
	service types.UID
	member  string
}

func newDNSLaws() dnsLaws {
	return dnsLaws{pods: map[serviceIn]time.Time{}, serving: map[serviceIn]time.Time{}, ended: map[serviceIn]time.Time{}, failedOver: map[string]time.Time{}, held: map[string]time.Time{}}
}

// noticing is how long it takes at most, with all well, until the zone no longer has what is gone: a loss is believed after
// four seconds, and then written.
const noticing = 5 * time.Second

// upset is how long the zone may be late after something happened to the federation itself: a process that died is succeeded
// within twelve seconds, and has to get to know its members.
const upset = 20 * time.Second

// globalName is that of a Service.
func globalName(u *unstructured.Unstructured) string {
	return u.GetName() + "." + u.GetNamespace() + ".fed.svc." + zone
}

// checkZone checks the zone. It is called with the fleet locked, at each tick.
func (d *dnsLaws) checkZone(f *Fleet, now time.Time) (broken []error) {
	before := d.given
	changed := d.read(f.DNS)
	if f.uplinks.anySick() {
		f.disturbed = now
	}
	for name, m := range f.members {
		d.noteFailedOver(m, f.clusters.named(name), now)
	}
	for _, u := range f.Federation.List(services, nil) {
		if u.GetDeletionTimestamp() != nil || valueAt(u, "spec.type") != string(corev1.ServiceTypeLoadBalancer) {
			continue
		}
		f.tally.check(neverEmpty)
		name := globalName(u)
		for _, m := range f.members {
			d.note(serviceIn{u.GetUID(), m.Name}, now, isReachable(f, m) && servedIn(f, m, u, now).ready, servedIn(f, m, u, now).address)
		}
		if len(d.given[name]) == 0 && now.Sub(f.laws.taken[serviceKey(u)]) > hearing && now.Sub(f.disturbed) > upset {
			broken = append(broken, d.checkEmpty(f, u, before[name], changed, now)...)
		}
		broken = append(broken, d.checkLost(f, u, now)...)
		if changed {
			broken = append(broken, d.checkReturned(f, u, before[name], now)...)
		}
		broken = append(broken, d.checkEnded(f, u, now)...)
	}
	return broken
}

// checkEmpty checks that no cluster serves a Service without an address in the zone, which before, at the last tick, had these.
func (d *dnsLaws) checkEmpty(f *Fleet, u *unstructured.Unstructured, before []string, changed bool, now time.Time) (broken []error) {
	name := globalName(u)
	for _, m := range f.members {
		at := serviceIn{u.GetUID(), m.Name}
		pods, serving := d.pods[at], d.serving[at]
		switch {
		case changed && m.loadBalancers.haveHad(before) && !pods.IsZero() && now.Sub(pods) > noticing:
			broken = append(broken, against(neverEmpty, "%s had %s, %s has pods of it that are ready, and now there is nothing", name, before, m.Name))
		case !serving.IsZero() && now.Sub(serving) > upset:
			broken = append(broken, against(neverEmpty, "%s has nothing, and %s serves it since %s", name, m.Name, now.Sub(serving)))
			d.serving[at] = now // said once
		}
	}
	return broken
}

// served is how a member serves a Service, and what that was found of: it holds until any of this changes.
type served struct {
	of             *unstructured.Unstructured
	version, round uint64
	dead           bool

	ready, address bool
}

// servedIn reports how a member serves a Service. It is called with the fleet locked.
func servedIn(f *Fleet, m *Member, u *unstructured.Unstructured, now time.Time) served {
	is := served{of: u, version: m.API.Version(), round: *m.pods.rounds, dead: m.Wire.Fault() == Dead}
	known := m.served[serviceKey(u)]
	if is.ready, is.address = known.ready, known.address; is == known {
		return known
	}
	is.ready, is.address = m.serves(u, now), addressGiven(f, m, u) != ""
	if m.served == nil {
		m.served = map[workloadKey]served{}
	}
	m.served[serviceKey(u)] = is
	return is
}

func serviceKey(u *unstructured.Unstructured) workloadKey {
	return workloadKey{services.Resource, u.GetNamespace(), u.GetName()}
}

// checkLost checks that a name does not have addresses of a cluster that is lost while another serves.
func (d *dnsLaws) checkLost(f *Fleet, u *unstructured.Unstructured, now time.Time) (broken []error) {
	f.tally.check("DNS does not have what is lost")
	name := globalName(u)
	for _, m := range f.members {
		since := m.faultSince
		if now.Sub(f.disturbed) < upset {
			continue
		}
		if f.disturbed.Add(upset).After(since) {
			since = f.disturbed.Add(upset)
		}
		if m.alias || !lost(m.Wire.ForAll()) || now.Sub(since) < noticing || !m.loadBalancers.haveHad(d.given[name]) {
			continue
		}
		if clustersCutOff(f, now)[m.Name] {
			d.held[m.Name] = now
		}
		if now.Sub(d.held[m.Name]) < noticing {
			continue
		}
		if other := d.servingMember(f, u, now); other != "" {
			m.faultSince = now // said once
			broken = append(broken, against("DNS does not have what is lost", "%s is lost for %s, %s serves, and %s has %s", m.Name, now.Sub(since), other, name, d.given[name]))
		}
	}
	return broken
}

// servingMember returns a member that has served a Service for long enough that the zone must have it, or "": none while somebody has just taken a copy away.
func (d *dnsLaws) servingMember(f *Fleet, u *unstructured.Unstructured, now time.Time) string {
	if now.Sub(f.laws.taken[serviceKey(u)]) <= hearing {
		return ""
	}
	for _, m := range f.members {
		since := d.serving[serviceIn{u.GetUID(), m.Name}]
		if c := f.clusters.named(m.Name); !since.IsZero() && now.Sub(since) > upset && c != nil && c.DNSWeight() > 0 && !c.IsFailedOver() {
			return m.Name
		}
	}
	return ""
}

// noteFailedOver keeps since when each cluster is failed over.
func (d *dnsLaws) noteFailedOver(m *Member, c *v1beta1.Cluster, now time.Time) {
	if c == nil || !c.IsFailedOver() {
		delete(d.failedOver, m.Name)
	} else if d.failedOver[m.Name].IsZero() {
		d.failedOver[m.Name] = now
	}
}

// checkReturned checks that a name does not get addresses of a cluster that is failed over while another serves: its pods are about to go.
func (d *dnsLaws) checkReturned(f *Fleet, u *unstructured.Unstructured, before []string, now time.Time) (broken []error) {
	f.tally.check("DNS does not get what is failed over")
	name := globalName(u)
	for _, m := range f.members {
		since := d.failedOver[m.Name]
		if m.alias || since.IsZero() || now.Sub(since) < noticing || now.Sub(f.disturbed) < upset || m.loadBalancers.haveHad(before) || !m.loadBalancers.haveHad(d.given[name]) || clustersCutOff(f, now)[m.Name] {
			continue
		}
		if other := d.servingMember(f, u, now); other != "" {
			broken = append(broken, against("DNS does not get what is failed over", "%s is failed over for %s, %s serves, and %s gets %s", m.Name, now.Sub(since), other, name, d.given[name]))
		}
	}
	return broken
}

// lost reports whether nobody can know what runs in a member.
func lost(f Fault) bool { return f == Partitioned || f == Hung || f == Dead }

// clustersCutOff are the clusters whose addresses stay, because most are away.
func clustersCutOff(f *Fleet, now time.Time) map[string]bool {
	var all []*v1beta1.Cluster
	for name := range f.members {
		if c := f.clusters.named(name); c != nil {
			all = append(all, c)
		}
	}
	return failoverplan.CutOff(all, f.Settings.failover(), now)
}

// isReachable reports whether the federation knows that a member can be reached, as it can.
func isReachable(f *Fleet, m *Member) bool {
	c := f.clusters.named(m.Name)
	if c == nil || !c.IsReady() || m.Wire.Fault() != Well {
		return false
	}
	silent := c.Condition(v1beta1.ClusterNodeHeartbeatsStale)
	return silent == nil || silent.Status != corev1.ConditionTrue
}

// haveHad reports whether any of the addresses is, or was, that of a load balancer of the member.
func (l *loadBalancers) haveHad(addresses []string) bool {
	return slices.ContainsFunc(addresses, func(a string) bool { return l.addresses[a] })
}

// note keeps since when a member has ready pods of a Service, and an address for it.
func (d *dnsLaws) note(at serviceIn, now time.Time, pods, address bool) {
	since := func(of map[serviceIn]time.Time, so bool) {
		if !so {
			delete(of, at)
		} else if of[at].IsZero() {
			of[at] = now
		}
	}
	since(d.pods, pods)
	since(d.serving, pods && address)
}

// read takes the records over when they have changed.
func (d *dnsLaws) read(from *DNS) (changed bool) {
	applied := from.Applied()
	if applied == d.applied {
		return false
	}
	records, _ := from.Records(context.Background(), zone) // never fails
	d.applied, d.given = applied, map[string][]string{}
	for _, r := range records {
		if r.Type == dnsprovider.A {
			d.given[r.Name] = append(d.given[r.Name], r.Rdata...)
		}
	}
	return true
}
