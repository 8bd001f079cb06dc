package ruleset

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// Model holds the API server's objects and the Ports that follow from them. It is not safe for concurrent use.
type Model struct {
	node     Node
	services map[Key]*entry
	sliceOf  map[Key]Key // the slice's name → its Service
	claims   claims
}

// entry is what is known of a Service.
type entry struct {
	service *corev1.Service // nil: there are only slices
	slices  map[string]*discoveryv1.EndpointSlice
	built   []*Port  // as Build made them
	reasons []string // of Build
	ports   []*Port  // without the addresses that another Service has
	lost    []string // why these are not there
}

// Change is what differs after an Update, without what stays the same.
type Change struct {
	Ports   []PortChange // sorted by family and ID
	Reasons []string     // why something that was asked for is not there: only what is new
	Skipped []string     // why whole Services are nothing to serve, as headless ones: only what is new
}

// PortChange is one Port before and after; nil if it does not exist.
type PortChange struct{ Before, After *Port }

// New returns a model of no Service.
func New(node Node) *Model {
	return &Model{node: node, services: map[Key]*entry{}, sliceOf: map[Key]Key{}, claims: claims{}}
}

// SetNode changes the node. All Services may differ: it returns their keys.
func (m *Model) SetNode(node Node) []Key {
	m.node = node
	return slices.Collect(maps.Keys(m.services))
}

// Node returns the node that the rules are for.
func (m *Model) Node() *Node { return &m.node }

// SetService takes in a Service, which must not be changed afterwards. It returns the key to Update.
func (m *Model) SetService(s *corev1.Service) Key {
	k := Key{s.Namespace, s.Name}
	m.entry(k).service = s
	return k
}

// DeleteService forgets a Service. It returns the key to Update.
func (m *Model) DeleteService(k Key) Key {
	m.entry(k).service = nil
	return k
}

// SetSlice takes in an EndpointSlice, which must not be changed afterwards. It returns the keys to Update: two if the
// slice belonged to another Service before.
func (m *Model) SetSlice(s *discoveryv1.EndpointSlice) []Key {
	name := Key{s.Namespace, s.Name}
	k, _, ok := serviceOf(s)
	var touched []Key
	if old, was := m.sliceOf[name]; was && (!ok || old != k) {
		touched = m.DeleteSlice(name)
	}
	if !ok {
		return touched
	}
	m.sliceOf[name] = k
	m.entry(k).slices[s.Name] = s
	return append(touched, k)
}

// DeleteSlice forgets an EndpointSlice by its namespace and name. It returns the keys to Update.
func (m *Model) DeleteSlice(name Key) []Key {
	k, was := m.sliceOf[name]
	if !was {
		return nil
	}
	delete(m.sliceOf, name)
	delete(m.entry(k).slices, name.Name)
	return []Key{k}
}

func (m *Model) entry(k Key) *entry {
	e := m.services[k]
	if e == nil {
		e = &entry{slices: map[string]*discoveryv1.EndpointSlice{}}
		m.services[k] = e
	}
	return e
}

// Update rebuilds the Ports of some Services and returns the changes. Its cost depends only on the size of these
// Services.
func (m *Model) Update(keys ...Key) Change {
	var change Change
	touched := map[Key]bool{} // these Services, and those that want an address of theirs
	for _, k := range keys {
		e := m.services[k]
		if e == nil {
			continue
		}
		touched[k] = true
		m.claims.remove(e.built)
		was, said := e.built, e.reasons
		e.built, e.reasons = nil, nil
		if e.service != nil {
			e.built, e.reasons = Build(&m.node, e.service, e.sortedSlices())
		}
		if e.service != nil && m.skips(e.service) {
			change.Skipped = append(change.Skipped, newReasons(e.reasons, said)...)
		} else {
			change.Reasons = append(change.Reasons, newReasons(e.reasons, said)...)
		}
		m.claims.add(e.built, e.service)
		m.claims.addRivals(touched, was, e.built)
	}
	for k := range touched {
		m.publish(k, &change)
	}
	slices.SortFunc(change.Ports, func(x, y PortChange) int { return x.eitherPort().compare(y.eitherPort()) })
	slices.Sort(change.Skipped)
	slices.Sort(change.Reasons)
	change.Reasons = slices.Compact(change.Reasons) // several ports may have the same
	return change
}

// newReasons returns the reasons that were not reported before.
func newReasons(reasons, said []string) []string {
	return slices.DeleteFunc(slices.Clone(reasons), func(reason string) bool { return slices.Contains(said, reason) })
}

func (m *Model) skips(s *corev1.Service) bool {
	return (&builder{node: &m.node, service: s}).whySkipped() != ""
}

// publish removes from a Service's Ports the addresses that others have, and records the changes.
func (m *Model) publish(k Key, change *Change) {
	e := m.services[k]
	before, said := e.ports, e.lost
	e.ports, e.lost = make([]*Port, len(e.built)), nil
	for i, p := range e.built {
		var lost []string
		e.ports[i], lost = m.claims.owned(p)
		e.lost = append(e.lost, lost...)
	}
	change.Reasons = append(change.Reasons, newReasons(e.lost, said)...)
	for _, old := range before {
		if now := findLike(e.ports, old); now == nil || !now.Equal(old) {
			change.Ports = append(change.Ports, PortChange{old, now})
		}
	}
	for _, now := range e.ports {
		if findLike(before, now) == nil {
			change.Ports = append(change.Ports, PortChange{nil, now})
		}
	}
	if e.service == nil && len(e.slices) == 0 {
		delete(m.services, k)
	}
}

// Ports returns all Ports, sorted by family and ID.
func (m *Model) Ports() []*Port {
	var out []*Port
	for _, e := range m.services {
		out = append(out, e.ports...)
	}
	slices.SortFunc(out, (*Port).compare)
	return out
}

// PortsOf returns the Ports of a Service.
func (m *Model) PortsOf(k Key) []*Port {
	if e := m.services[k]; e != nil {
		return e.ports
	}
	return nil
}

func (e *entry) sortedSlices() []*discoveryv1.EndpointSlice {
	return slices.SortedFunc(maps.Values(e.slices), func(x, y *discoveryv1.EndpointSlice) int {
		return strings.Compare(x.Name, y.Name)
	})
}

func (c PortChange) eitherPort() *Port {
	if c.After != nil {
		return c.After
	}
	return c.Before
}

func findLike(in []*Port, like *Port) *Port {
	for _, p := range in {
		if p.ID == like.ID && p.IPv6 == like.IPv6 {
			return p
		}
	}
	return nil
}

// Equal reports whether two Ports are the same in everything.
func (p *Port) Equal(o *Port) bool {
	return p.ID == o.ID && p.IPv6 == o.IPv6 && p.Affinity == o.Affinity && p.Retried == o.Retried && p.HealthCheckNodePort == o.HealthCheckNodePort &&
		p.Cluster.equal(o.Cluster) && p.Own.equal(o.Own) && p.Local.equal(o.Local) &&
		slices.EqualFunc(p.Frontends, o.Frontends, Frontend.Equal) && slices.Equal(p.Living, o.Living)
}

func (p Pool) equal(o Pool) bool { return p.Tier == o.Tier && slices.Equal(p.Backends, o.Backends) }

// Equal reports whether two Frontends are the same in everything.
func (f Frontend) Equal(o Frontend) bool {
	return f.Key == o.Key && f.Kind == o.Kind && f.Alone == o.Alone && f.FromPod == o.FromPod && f.FromNode == o.FromNode &&
		f.FromOutside == o.FromOutside && slices.Equal(f.SourceRanges, o.SourceRanges)
}

func (p *Port) compare(o *Port) int {
	switch {
	case p.IPv6 == o.IPv6:
		return p.ID.compare(o.ID)
	case p.IPv6:
		return 1
	}
	return -1
}

func (id PortID) compare(o PortID) int {
	return cmp.Or(strings.Compare(id.Namespace, o.Namespace), strings.Compare(id.Name, o.Name),
		strings.Compare(id.Port, o.Port), strings.Compare(string(id.Protocol), string(o.Protocol)))
}
