package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/dnsprovider"
)

// Records decides the records of the objects. Objects affect each other only by the hosts that they claim: the plan of
// many is the union of the plans of each.
func Records(in Input) Plan {
	clusters := make(map[string]*Cluster, len(in.Clusters))
	for i := range in.Clusters {
		clusters[in.Clusters[i].Name] = &in.Clusters[i]
	}
	if in.Claims == nil {
		in.Claims = NewClaims(Zone{Federation: in.Federation, Name: in.Zone})
		for i := range in.Objects {
			in.Claims.Set(&in.Objects[i])
		}
	}
	var all Plan
	for i := range in.Objects {
		p := planner{in: &in, object: &in.Objects[i], key: in.Objects[i].Key(), levels: map[string]*level{}}
		p.observe(clusters)
		p.decide()
		all.Records = append(all.Records, p.plan.Records...)
		all.Reasons = append(all.Reasons, p.plan.Reasons...)
		all.Resolve = append(all.Resolve, p.plan.Resolve...)
		all.Names = append(all.Names, p.plan.Names...)
		all.Targets = append(all.Targets, p.plan.Targets...)
		all.Offers = append(all.Offers, p.plan.Offers...)
	}
	slices.SortFunc(all.Records, dnsprovider.Compare)
	slices.SortFunc(all.Reasons, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Message, b.Message))
	})
	all.Reasons = slices.Compact(all.Reasons)
	slices.Sort(all.Resolve)
	all.Resolve = slices.Compact(all.Resolve)
	slices.SortFunc(all.Targets, func(a, b Target) int { return cmp.Compare(a.Key(), b.Key()) })
	all.Targets = slices.Compact(all.Targets)
	slices.SortFunc(all.Names, func(a, b Name) int { return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Name, b.Name)) })
	slices.SortFunc(all.Offers, func(a, b Offer) int {
		return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Cluster, b.Cluster))
	})
	return all
}

// level is one name with the clusters that it stands for.
type level struct {
	Level
	// up is the name of the next level, or "".
	up    string
	parts []*part
}

// planner plans one object.
type planner struct {
	in     *Input
	object *Object
	key    string // of the object
	levels map[string]*level
	plan   Plan
}

func (p *planner) addReason(cluster, format string, args ...any) {
	p.plan.Reasons = append(p.plan.Reasons, Reason{Object: p.key, Cluster: cluster, Message: fmt.Sprintf(format, args...)})
}

// addCodedReason is addReason with a code.
func (p *planner) addCodedReason(code, cluster, format string, args ...any) {
	p.addReason(cluster, format, args...)
	p.plan.Reasons[len(p.plan.Reasons)-1].Code = code
}

// answerSettings are those for what names answer.
func (p *planner) answerSettings() *v1beta1.DNSSettings {
	if p.object.Balanced { // which of them clients ask is not a matter of clusters
		s := v1beta1.DNSSettings{Strategy: v1beta1.DNSNearest}
		if p.object.Settings != nil {
			s.TTLSeconds = p.object.Settings.TTLSeconds
		}
		return &s
	}
	return p.settings()
}

// settings are those for what clusters have.
func (p *planner) settings() *v1beta1.DNSSettings {
	if p.object.Settings != nil {
		return p.object.Settings
	}
	return &v1beta1.DNSSettings{}
}

// observe finds the object's names and what each cluster has for them.
func (p *planner) observe(clusters map[string]*Cluster) {
	if p.object.Balanced {
		if !p.in.Unnamed {
			p.observeLoadBalancers()
		}
		if p.object.Kind == KindIngress {
			return
		}
	}
	if p.object.Ingresses == nil {
		p.recordOffers(nil)
		return
	}
	if p.object.Kind == KindService && p.object.Type != corev1.ServiceTypeLoadBalancer {
		p.addReason("", "type %s has no records: must be LoadBalancer", p.object.Type)
		return
	}
	if left := p.object.Ingresses.Omitted; left != nil {
		p.addCodedReason(AddressesOmitted, "", "%d load balancer addresses and %d clusters are left out: the annotations of the object have no room for more", left.Addresses, left.Clusters)
	}
	parts := map[string]*part{}
	for _, item := range p.object.Ingresses.Items {
		switch cluster, joined := clusters[item.Cluster]; {
		case !joined:
			p.addReason(item.Cluster, "the cluster is not joined: it has no records")
		case item.IsKnown():
			parts[item.Cluster] = p.partOf(cluster, item)
		}
	}
	if !p.object.Balanced && !p.in.Unnamed {
		p.nameClusters(parts)
	}
	all := slices.SortedFunc(maps.Values(parts), func(a, b *part) int { return cmp.Compare(a.Name, b.Name) })
	p.applyHealthCheck(all)
	p.recordOffers(all)
}

// nameClusters makes the names that answer with what clusters have.
func (p *planner) nameClusters(parts map[string]*part) {
	hosts := p.makeHosts()
	for _, part := range parts {
		for _, host := range hosts {
			p.levels[host].parts = append(p.levels[host].parts, part)
		}
		p.recordMissingNames(part.Cluster)
	}
	if len(parts) > 0 {
		p.makeLevels(parts)
	}
}

// makeLevels makes the levels of a Service: those of all joined clusters' places. A name that pods there use thus exists,
// and leads to a serving cluster, even while their cluster has no load balancer of the Service.
func (p *planner) makeLevels(parts map[string]*part) {
	if p.object.Kind != KindService {
		return
	}
	known := map[string][]string{} // by place, which many clusters may share
	for i := range p.in.Clusters {
		cluster := &p.in.Clusters[i]
		has := parts[cluster.Name]
		if has == nil {
			has = &part{Cluster: cluster, rank: nothing, why: "it has no load balancer of the Service"}
		}
		key := cluster.Region + "/" + strings.Join(cluster.Zones, "/")
		names, ok := known[key]
		if said := len(p.plan.Reasons); !ok {
			if names = p.namesAtPlace(cluster); len(p.plan.Reasons) == said { // otherwise the reason names each
				known[key] = names
			}
		}
		for _, name := range names {
			p.levels[name].parts = append(p.levels[name].parts, has)
		}
	}
}

// recordMissingNames records the names that a cluster with the object would have if its nodes had the labels.
func (p *planner) recordMissingNames(cluster *Cluster) {
	switch {
	case p.object.Kind != KindService:
	case cluster.Region == "":
		p.addCodedReason(TopologyLabelsMissing, cluster.Name, "the cluster has no region: it counts for the global name only")
	case len(cluster.Zones) == 0:
		p.addCodedReason(TopologyLabelsMissing, cluster.Name, "the cluster has no zones: it counts for the region and the global name only")
	}
}

// makeHosts returns the names that the object gets of those it claims, and makes their levels.
func (p *planner) makeHosts() (names []string) {
	for _, host := range p.object.claimedHosts() {
		if host == "" {
			continue
		}
		name, fault := p.in.Claims.claimable(p.object.Namespace, host)
		if fault != "" {
			code := "" // hosts outside the zone are not ours
			if name, _ := dnsprovider.CanonicalName(host); name == p.in.Claims.zone.nameServer() {
				code = Rejected
			} else if strings.HasSuffix(fault, notGranted) {
				code = NotGranted
			}
			p.addCodedReason(code, "", "host %s has no records: %s", host, fault)
		} else if owner := p.in.Claims.ownerOf(name); owner != p.key {
			p.addCodedReason(HostConflict, "", "host %s has no records of this object: %s", host, p.in.Claims.conflictReason(name, p.key))
		} else if !slices.Contains(names, name) {
			names = append(names, p.ensureLevel(name, LevelHost, ""))
		}
	}
	return names
}

// namesAtPlace returns the names of a Service at a cluster's place, and makes their levels.
func (p *planner) namesAtPlace(cluster *Cluster) []string {
	namer := newNamer(p.in, p.object)
	global, err := namer.nameAt()
	if err != nil {
		p.addCodedReason(NameInvalid, "", "no records: %v", err)
		return nil
	}
	names := []string{p.ensureLevel(global, LevelGlobal, "")}
	if cluster.Region == "" {
		return names
	}
	region, err := namer.nameAt(cluster.Region)
	if err != nil {
		p.addCodedReason(NameInvalid, cluster.Name, "no names of the region: %v", err)
		return names
	}
	names = append(names, p.ensureLevel(region, LevelRegion, global))
	for _, z := range cluster.Zones {
		if zone, err := namer.nameAt(z, cluster.Region); err != nil {
			p.addCodedReason(NameInvalid, cluster.Name, "no name of the zone: %v", err)
		} else if !slices.Contains(names, zone) {
			names = append(names, p.ensureLevel(zone, LevelZone, region))
		}
	}
	return names
}

func (p *planner) ensureLevel(name string, l Level, up string) string {
	if p.levels[name] == nil {
		p.levels[name] = &level{Level: l, up: up}
	}
	return name
}
