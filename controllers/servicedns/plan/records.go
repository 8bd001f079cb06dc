package plan

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/dnsprovider"
)

// Records decides the records of the Services. Services do not affect each other: the plan of many
// is the plans of each, put together.
func Records(in Input) Plan {
	clusters := make(map[string]Cluster, len(in.Clusters))
	for _, c := range in.Clusters {
		clusters[c.Name] = c
	}
	var all Plan
	for _, s := range in.Services {
		p := planner{in: &in, service: s, namer: newNamer(&in, s), levels: map[string]*level{}}
		p.observe(clusters)
		p.decide()
		all.Records = append(all.Records, p.plan.Records...)
		all.Reasons = append(all.Reasons, p.plan.Reasons...)
		all.Resolve = append(all.Resolve, p.plan.Resolve...)
	}
	slices.SortFunc(all.Records, dnsprovider.Compare)
	slices.SortFunc(all.Reasons, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Message, b.Message))
	})
	all.Reasons = slices.Compact(all.Reasons)
	slices.Sort(all.Resolve)
	all.Resolve = slices.Compact(all.Resolve)
	return all
}

// level is one name and what serves there.
type level struct {
	// up is the name of the next level, empty for the global one.
	up string
	served
	// spare is what drained clusters would serve; only the global level has it.
	spare served
}

// served is what load balancers have: addresses, and names of hosts.
type served struct {
	addresses []netip.Addr
	hosts     []string
}

func (s *served) add(more served) {
	s.addresses = append(s.addresses, more.addresses...)
	s.hosts = append(s.hosts, more.hosts...)
}

func (s *served) nothing() bool { return len(s.addresses) == 0 && len(s.hosts) == 0 }

// planner plans one Service.
type planner struct {
	in      *Input
	service Service
	namer   namer
	levels  map[string]*level
	plan    Plan
}

func (p *planner) because(cluster, format string, args ...any) {
	p.plan.Reasons = append(p.plan.Reasons, Reason{
		Service: p.service.Namespace + "/" + p.service.Name, Cluster: cluster, Message: fmt.Sprintf(format, args...),
	})
}

// observe fills the levels with what serves at each.
func (p *planner) observe(clusters map[string]Cluster) {
	if p.service.Ingresses == nil {
		return
	}
	if p.service.Type != corev1.ServiceTypeLoadBalancer {
		p.because("", "type %s has no records: must be LoadBalancer", p.service.Type)
		return
	}
	for _, item := range p.service.Ingresses.Items {
		cluster, joined := clusters[item.Cluster]
		if !joined {
			p.because(item.Cluster, "the cluster is not joined: it has no records")
			continue
		}
		serving := p.serving(cluster, item)
		for _, name := range p.place(cluster) {
			switch l := p.levels[name]; {
			case !cluster.Drained:
				l.add(serving)
			case l.up == "":
				l.spare.add(serving)
			}
		}
	}
}

// serving returns what of a cluster's load balancers counts.
func (p *planner) serving(cluster Cluster, item v1beta1.ClusterServiceIngress) (l served) {
	switch {
	case !cluster.Ready:
		p.because(cluster.Name, "the cluster is not ready: its addresses are out")
		return l
	case item.Items == nil:
		p.because(cluster.Name, "no endpoint is ready: its addresses are out")
		return l
	case cluster.Drained:
		p.because(cluster.Name, "the cluster's DNS weight is 0: its addresses count only for the global name, and only while no other cluster serves")
	}
	for _, ingress := range item.Items {
		if ingress.IP == "" {
			p.addHost(&l, cluster.Name, ingress.Hostname)
		} else if addr, err := netip.ParseAddr(ingress.IP); err != nil || addr.Zone() != "" {
			p.because(cluster.Name, "load balancer address %q: must be an IP address", ingress.IP)
		} else {
			l.addresses = append(l.addresses, addr.Unmap())
		}
	}
	return l
}

func (p *planner) addHost(l *served, cluster, hostname string) {
	host, err := dnsprovider.CanonicalName(hostname)
	switch {
	case err != nil:
		p.because(cluster, "load balancer host: %v", err)
	case dnsprovider.InZone(host, p.in.Zone):
		p.because(cluster, "load balancer host %s: must be outside the zone %s, where it could lead to itself", host, p.in.Zone)
	default:
		l.hosts = append(l.hosts, host)
	}
}

// place returns the names to which a cluster contributes, and makes their levels.
func (p *planner) place(cluster Cluster) []string {
	global, err := p.namer.name()
	if err != nil {
		p.because("", "no records: %v", err)
		return nil
	}
	names := []string{p.ensure(global, "")}
	if cluster.Region == "" {
		p.because(cluster.Name, "the cluster has no region: it counts for the global name only")
		return names
	}
	region, err := p.namer.name(cluster.Region)
	if err != nil {
		p.because(cluster.Name, "no names of the region: %v", err)
		return names
	}
	names = append(names, p.ensure(region, global))
	if len(cluster.Zones) == 0 {
		p.because(cluster.Name, "the cluster has no zones: it counts for the region and the global name only")
	}
	for _, z := range cluster.Zones {
		if zone, err := p.namer.name(z, cluster.Region); err != nil {
			p.because(cluster.Name, "no name of the zone: %v", err)
		} else if !slices.Contains(names, zone) {
			names = append(names, p.ensure(zone, region))
		}
	}
	return names
}

func (p *planner) ensure(name, up string) string {
	if p.levels[name] == nil {
		p.levels[name] = &level{up: up}
	}
	return name
}

// decide makes the records of each level.
func (p *planner) decide() {
	for _, name := range slices.Sorted(maps.Keys(p.levels)) {
		l := p.levels[name]
		if l.nothing() {
			l.served = l.spare
		}
		slices.Sort(l.hosts)
		l.hosts = slices.Compact(l.hosts)
		if alone := len(l.hosts) == 1 && len(l.addresses) == 0; alone {
			p.add(name, dnsprovider.CNAME, l.hosts[0])
			continue
		}
		p.resolve(name, l)
		switch {
		case len(l.addresses) > 0:
			p.addAddresses(name, l.addresses)
		case len(l.hosts) > 0:
			p.because("", "%s: no address of a host is known: leads to the first host alone", name)
			p.add(name, dnsprovider.CNAME, l.hosts[0])
		case l.up != "":
			p.add(name, dnsprovider.CNAME, l.up)
		default:
			p.because("", "%s: no cluster serves: the name has no records", name)
		}
	}
}

// resolve puts the addresses of a level's hosts to those that it has.
func (p *planner) resolve(name string, l *level) {
	for _, host := range l.hosts {
		p.plan.Resolve = append(p.plan.Resolve, host)
		addresses, known := p.in.Resolved[host]
		if !known {
			p.because("", "%s: the addresses of host %s are not known yet", name, host)
		}
		for _, addr := range addresses {
			l.addresses = append(l.addresses, addr.Unmap().WithZone(""))
		}
	}
}

func (p *planner) addAddresses(name string, addresses []netip.Addr) {
	var v4, v6 []string
	for _, addr := range addresses {
		if addr.Is4() {
			v4 = append(v4, addr.String())
		} else {
			v6 = append(v6, addr.String())
		}
	}
	if v4 != nil {
		p.add(name, dnsprovider.A, v4...)
	}
	if v6 != nil {
		p.add(name, dnsprovider.AAAA, v6...)
	}
}

func (p *planner) add(name string, t dnsprovider.Type, data ...string) {
	set, err := dnsprovider.New(name, t, p.in.TTL, data...)
	if err != nil {
		p.because("", "left out: %v", err)
		return
	}
	p.plan.Records = append(p.plan.Records, set)
}
