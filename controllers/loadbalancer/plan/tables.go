package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"federation/apiserver/apis/federation/v1beta1"
	servicednsplan "federation/controllers/servicedns/plan"
)

// Tables makes one table after the other. With each change only those hosts are made again that it is about; all others are those of the table before.
// What comes is the table that Routes makes of all that there is then. Make it with NewTables.
type Tables struct {
	table *Table
	// ingresses are those that are served. With services they are all that there is, by namespace/name.
	ingresses map[string]*networkingv1.Ingress
	services  map[string]*corev1.Service
	served    served
	ownership
	// rest has the rules without a host, by namespace; inRest those that some host of the namespace leads to.
	rest, inRest map[string]*Host
	// hosts counts those with a name, by namespace.
	hosts map[string]int
	// because has the reasons that have come with each part; that of listeners is the zero one.
	because map[part][]Reason
	names   map[PoolID]string
	pools   uses[PoolID]
	secrets uses[string]
	reasons uses[Reason]
}

// Change is what has become different.
type Change struct {
	// Ingresses of any class, and Services, are by namespace/name; nil is for those that are gone.
	Ingresses map[string]*networkingv1.Ingress
	Services  map[string]*corev1.Service
	// Grants and Kept are as in World; nil: as before.
	Grants *[]*v1beta1.DNSNameGrant
	Kept   map[string]servicednsplan.Keep
}

// Difference is what comes of a change.
type Difference struct {
	// Come and Gone are the pools that requests and connections can go to since then, and can go to no more. Renamed are those with another server name.
	Come, Gone, Renamed []PoolID
	// Secrets: others are named for certificates.
	Secrets bool
	// Reasons are those that are new, sorted.
	Reasons []Reason
}

// NewTables begins without anything. ports are those at which Services are served, with udp by UDP, too.
func NewTables(ports PortRanges, udp bool) *Tables {
	return &Tables{
		table: &Table{hosts: map[string]*Host{}, listeners: map[portKey]PoolID{}}, served: served{ports, udp},
		ingresses: map[string]*networkingv1.Ingress{}, services: map[string]*corev1.Service{}, ownership: newOwnership(),
		rest: map[string]*Host{}, inRest: map[string]*Host{}, hosts: map[string]int{}, because: map[part][]Reason{}, names: map[PoolID]string{},
		pools: newUses[PoolID](), secrets: newUses[string](), reasons: newUses[Reason](),
	}
}

// Table is the table as it is now; the same one if nothing of it has changed.
func (t *Tables) Table() *Table { return t.table }

// Ingress returns an Ingress that is served; nil if there is none.
func (t *Tables) Ingress(key string) *networkingv1.Ingress { return t.ingresses[key] }

// Service returns a Service; nil if there is none.
func (t *Tables) Service(key string) *corev1.Service { return t.services[key] }

// Services returns all Services. Nobody changes the map.
func (t *Tables) Services() map[string]*corev1.Service { return t.services }

// Pools returns all pools, in no order.
func (t *Tables) Pools() []PoolID { return slices.Collect(maps.Keys(t.pools.number)) }

// HasPool reports whether requests or connections can go to a pool.
func (t *Tables) HasPool(id PoolID) bool { return t.pools.number[id] > 0 }

// PoolsOf returns the pools of Services, which are by namespace/name.
func (t *Tables) PoolsOf(services map[string]bool) (some []PoolID) {
	if len(services) == 0 {
		return nil
	}
	for id := range t.pools.number {
		if services[id.Key()] {
			some = append(some, id)
		}
	}
	return some
}

// ServerName is what checks of a pool of TLS connections ask for.
func (t *Tables) ServerName(id PoolID) string { return t.names[id] }

// Secrets returns the Secrets with certificates of all hosts, as namespace/name, in no order.
func (t *Tables) Secrets() []string { return slices.Collect(maps.Keys(t.secrets.number)) }

// Reasons returns why something is not served as it is asked for, sorted.
func (t *Tables) Reasons() []Reason {
	return sortedReasons(slices.Collect(maps.Keys(t.reasons.number)))
}

func sortedReasons(all []Reason) []Reason {
	slices.SortFunc(all, func(a, b Reason) int {
		return cmp.Or(strings.Compare(a.String(), b.String()), strings.Compare(a.Holder, b.Holder))
	})
	return all
}

// Change takes in a change.
func (t *Tables) Change(c Change) (d Difference) {
	next := *t.table
	p := pass{Tables: t, stale: map[part]bool{}, read: map[*networkingv1.Ingress]*said{}, next: &next}
	for key, i := range c.Ingresses {
		p.setIngress(key, i)
	}
	p.setServices(c.Services)
	if c.Grants != nil {
		t.grants = *c.Grants
		for one := range t.claims {
			p.stale[one] = true
		}
	}
	if c.Kept != nil {
		for _, host := range t.keep(c.Kept) {
			p.stale[part{host: host}] = true
		}
	}
	t.decide(p.stale)
	p.makeAll()
	if p.changed {
		t.table = p.next
	}
	if p.renamed {
		d.Renamed = p.rename()
	}
	d.Come, d.Gone = t.pools.changes()
	come, gone := t.secrets.changes()
	d.Secrets = len(come)+len(gone) > 0
	d.Reasons, _ = t.reasons.changes()
	sortedReasons(d.Reasons)
	return d
}

// pass is the work of one change.
type pass struct {
	*Tables
	// stale are the parts that are to be made again, and listeners says whether these are.
	stale     map[part]bool
	listeners bool
	// read are the Ingresses that have been read.
	read map[*networkingv1.Ingress]*said
	// next becomes the next table, if something has changed. Its hosts are those of the table before until copied.
	next            *Table
	changed, copied bool
	// renamed: names of pools may have changed.
	renamed bool
}

// setIngress notes whom an Ingress speaks of, and spoke of.
func (p *pass) setIngress(key string, is *networkingv1.Ingress) {
	if was := p.ingresses[key]; was != nil {
		p.mark(p.removeClaims(was))
		delete(p.ingresses, key)
	}
	if is != nil && v1beta1.IsBalanced(is) {
		p.mark(p.addClaims(is))
		p.ingresses[key] = is
	}
}

// mark has parts made again.
func (p *pass) mark(parts []part) {
	for _, one := range parts {
		p.stale[one] = true
	}
}

// setServices notes whose backends Services are.
func (p *pass) setServices(services map[string]*corev1.Service) {
	backends := map[string]map[string]bool{} // by namespace, those that matter
	for key, is := range services {
		was := p.services[key]
		if p.services[key] = is; is == nil {
			delete(p.services, key)
		}
		if isSameBackend(was, is) {
			continue
		}
		p.listeners = p.listeners || was != nil && v1beta1.IsBalancedService(was) || is != nil && v1beta1.IsBalancedService(is)
		namespace, name, _ := strings.Cut(key, "/")
		if backends[namespace] == nil {
			backends[namespace] = map[string]bool{}
		}
		backends[namespace][name] = true
	}
	if len(backends) == 0 {
		return
	}
	for _, i := range p.ingresses {
		if some := backends[i.Namespace]; some != nil && namesAny(i, some) {
			p.mark(partsOf(i))
		}
	}
}

// isSameBackend reports whether two states of a Service make no difference to tables; nil is for none.
func isSameBackend(a, b *corev1.Service) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.UID == b.UID && a.CreationTimestamp.Equal(&b.CreationTimestamp) && v1beta1.IsBalancedService(a) == v1beta1.IsBalancedService(b) &&
		apiequality.Semantic.DeepEqual(a.Spec, b.Spec) && apiequality.Semantic.DeepEqual(a.Status.LoadBalancer, b.Status.LoadBalancer) // which says who has a port
}

// makeAll makes what is stale: rules without a host before the hosts that lead to them.
func (p *pass) makeAll() {
	moved := map[string]bool{} // namespaces whose rules without a host are new
	for one := range p.stale {
		if one.namespace != "" {
			p.makeRest(one)
			moved[one.namespace] = true
		}
	}
	touched := maps.Clone(moved)
	for one := range p.stale {
		if one.host == anyHost {
			continue
		}
		was := p.next.hosts[one.host]
		is := p.makeHost(one)
		p.setHost(one.host, is)
		for _, h := range []*Host{was, is} {
			if h != nil {
				touched[h.Namespace] = true
			}
		}
	}
	if len(moved) > 0 {
		p.moveRest(moved)
	}
	if own := p.owners[anyHost]; own.first == nil {
		p.setHost(anyHost, nil)
	} else {
		p.setHost(anyHost, p.rest[own.first.Namespace])
	}
	for namespace := range touched {
		p.countRest(namespace)
	}
	if p.listeners {
		p.makeListeners()
	}
}

// makeRest makes the rules without a host of a namespace.
func (p *pass) makeRest(of part) {
	b := hostBuilder{services: p.services, host: newHost(anyHost, of.namespace)}
	some := false
	for _, i := range p.claims[of] {
		if v1beta1.PassesTLS(i) {
			b.addPassed(p.said(i))
		} else {
			b.add(p.said(i))
			some = true
		}
	}
	p.setReasons(of, b.reasons)
	if p.rest[of.namespace] = b.host; !some {
		delete(p.rest, of.namespace)
	}
}

// makeHost makes a host; nil if it is not one of the table.
func (p *pass) makeHost(of part) *Host {
	holder, below := p.holderOf(of.host)
	b := hostBuilder{services: p.services}
	if holder != nil && !below {
		b.host = newHost(of.host, holder.Namespace)
		b.host.rest = p.rest[holder.Namespace]
	}
	for _, i := range p.claims[of] {
		switch {
		case b.host == nil || i.Namespace != b.host.Namespace:
			b.refuse(i, of.host, p.isGranted(i.Namespace, of.host), holder)
		case v1beta1.PassesTLS(i):
			b.addPassed(p.said(i))
		default:
			b.add(p.said(i))
		}
	}
	if b.host != nil && b.host.passed != nil {
		b.dropCertificates(p.claims[of])
	}
	p.setReasons(of, b.reasons)
	return b.host
}

func (p *pass) said(i *networkingv1.Ingress) *said {
	s := p.read[i]
	if s == nil {
		s = readIngress(i)
		p.read[i] = s
	}
	return s
}

// setHost sets a host of the next table; nil: it has none of that name.
func (p *pass) setHost(name string, is *Host) {
	was := p.next.hosts[name]
	if was == is {
		return
	}
	p.copyHosts()
	if p.next.hosts[name] = is; is == nil {
		delete(p.next.hosts, name)
	}
	p.count(is, 1)
	p.count(was, -1)
}

func (p *pass) copyHosts() {
	if !p.copied {
		p.next.hosts, p.copied, p.changed = maps.Clone(p.next.hosts), true, true
	}
}

// count counts a host, or counts it no more, with where it leads to and its certificate.
func (p *pass) count(h *Host, by int) {
	if h == nil {
		return
	}
	if h.Name != anyHost {
		p.hosts[h.Namespace] += by
	}
	if h.Secret != "" {
		p.secrets.add(h.Secret, by)
	}
	p.countPools(h, by)
	p.renamed = p.renamed || h.passed != nil
}

func (p *pass) countPools(h *Host, by int) {
	if h != nil {
		h.eachPool(func(id PoolID) { p.pools.add(id, by) })
	}
}

// moveRest has the hosts of namespaces lead to their new rules without a host.
func (p *pass) moveRest(namespaces map[string]bool) {
	for name, h := range p.next.hosts {
		if name == anyHost || !namespaces[h.Namespace] || h.rest == p.rest[h.Namespace] {
			continue
		}
		p.copyHosts()
		same := *h
		same.rest = p.rest[h.Namespace]
		p.next.hosts[name] = &same
	}
}

// countRest counts where the rules without a host of a namespace lead to, if there is a host that leads to them.
func (p *pass) countRest(namespace string) {
	if p.hosts[namespace] == 0 {
		delete(p.hosts, namespace)
	}
	was, is := p.inRest[namespace], p.rest[namespace]
	if p.hosts[namespace] == 0 {
		is = nil
	}
	p.countPools(is, 1)
	p.countPools(was, -1)
	if p.inRest[namespace] = is; is == nil {
		delete(p.inRest, namespace)
	}
}

func (p *pass) makeListeners() {
	listeners, reasons := listen(p.services, p.served)
	for _, id := range listeners {
		p.pools.add(id, 1)
	}
	for _, id := range p.next.listeners {
		p.pools.add(id, -1)
	}
	p.next.listeners, p.changed = listeners, true
	p.setReasons(part{}, reasons)
}

// setReasons sets why something of a part is not served.
func (p *pass) setReasons(of part, reasons []Reason) {
	for _, r := range reasons {
		p.reasons.add(r, 1)
	}
	for _, r := range p.because[of] {
		p.reasons.add(r, -1)
	}
	if p.because[of] = reasons; len(reasons) == 0 {
		delete(p.because, of)
	}
}

// rename returns the pools that have another server name than before.
func (p *pass) rename() (others []PoolID) {
	was := p.names
	p.names = p.table.ServerNames()
	for id := range p.pools.number {
		if was[id] != p.names[id] {
			others = append(others, id)
		}
	}
	return others
}
