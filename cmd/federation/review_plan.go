package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
	failover "federation/controllers/failover/plan"
	placement "federation/controllers/placement/plan"
	names "federation/controllers/servicedns/plan"
	"federation/dnsprovider"
)

// reviewInput is all that a review depends on.
type reviewInput struct {
	clusters []*v1beta1.Cluster
	policies []*v1beta1.PlacementPolicy
	// objects are those whose replicas are divided.
	objects []placement.Object
	// named are those that have names in DNS.
	named []names.Object
	// info is nil where the federation does not say how it is set up: then nothing is said of DNS.
	info *v1beta1.Info
	now  time.Time
}

// reviewed says what would happen if the clusters that a spec names were lost, and for long, or drained. It is a function of
// values, made of those that would do it. The error names the field, its value and what there is.
func reviewed(in reviewInput, spec v1beta1.FailoverReviewSpec) (s v1beta1.FailoverReviewStatus, errs field.ErrorList) {
	lost, errs := lostClusters(in.clusters, spec)
	if len(errs) > 0 {
		return s, errs
	}
	s.Clusters = lost
	then := without(in.clusters, lost, in.now)
	if spec.Drained {
		then = drained(in.clusters, lost)
	} else {
		s.Held = failover.Held(in.clusters, lost, in.settings(), in.now)
	}
	s.Records = recordChanges(in, then)
	s.Moves = moves(in, then, lost)
	for _, m := range s.Moves {
		s.Unplaced += m.Unplaced
		for _, c := range m.Clusters {
			if slices.Contains(lost, c.Cluster) {
				s.Replicas += c.Before - c.After
			}
		}
	}
	return s, nil
}

// settings are those of failover, as far as they decide what is held.
func (in *reviewInput) settings() failover.Settings {
	if in.info == nil {
		return failover.DefaultSettings()
	}
	return failover.SettingsOf(*in.info)
}

// lostClusters are the names of the clusters that a spec takes as lost, sorted.
func lostClusters(clusters []*v1beta1.Cluster, spec v1beta1.FailoverReviewSpec) ([]string, field.ErrorList) {
	lost, path := map[string]bool{}, field.NewPath("spec")
	var errs field.ErrorList
	find := func(at *field.Path, value, there string, is func(*v1beta1.Cluster) bool) {
		found := false
		for _, c := range clusters {
			if is(c) {
				lost[c.Name], found = true, true
			}
		}
		if !found {
			errs = append(errs, field.Invalid(at, value, there))
		}
	}
	for i, name := range spec.Clusters {
		find(path.Child("clusters").Index(i), name, "must be the name of a cluster of this federation",
			func(c *v1beta1.Cluster) bool { return c.Name == name })
	}
	for i, zone := range spec.Zones {
		find(path.Child("zones").Index(i), zone, "must be REGION/ZONE or ZONE, and hold all nodes of at least one cluster, together with the other zones",
			func(c *v1beta1.Cluster) bool { return touches(c, zone) && within(c, spec.Zones) })
	}
	for i, region := range spec.Regions {
		find(path.Child("regions").Index(i), region, "must be the region of a cluster of this federation",
			func(c *v1beta1.Cluster) bool { return c.Status.Region == region })
	}
	return slices.Sorted(maps.Keys(lost)), errs
}

// touches tells whether a cluster has nodes in a zone, which is REGION/ZONE or ZONE.
func touches(c *v1beta1.Cluster, zone string) bool {
	return slices.ContainsFunc(c.Status.Zones, func(z string) bool { return zone == z || zone == c.Status.Region+"/"+z })
}

// within tells whether all zones of a cluster are among some.
func within(c *v1beta1.Cluster, zones []string) bool {
	return !slices.ContainsFunc(c.Status.Zones, func(z string) bool {
		return !slices.Contains(zones, z) && !slices.Contains(zones, c.Status.Region+"/"+z)
	})
}

// without are the clusters, those that are lost being so for longer than any grace period.
func without(clusters []*v1beta1.Cluster, lost []string, now time.Time) []*v1beta1.Cluster {
	long := metav1.NewTime(now.Add(-48 * time.Hour))
	then := make([]*v1beta1.Cluster, len(clusters))
	for i, c := range clusters {
		if then[i] = c; !slices.Contains(lost, c.Name) {
			continue
		}
		then[i] = c.DeepCopy()
		then[i].Status.Conditions = []v1beta1.ClusterCondition{{Type: v1beta1.ClusterReady, Status: "False", LastTransitionTime: long}}
		then[i].Status.Failover = &v1beta1.ClusterFailover{Phase: v1beta1.FailoverOut, Since: long, LostAt: &long}
	}
	return then
}

// drained are the clusters, some of them being drained.
func drained(clusters []*v1beta1.Cluster, some []string) []*v1beta1.Cluster {
	then := make([]*v1beta1.Cluster, len(clusters))
	for i, c := range clusters {
		if then[i] = c; slices.Contains(some, c.Name) {
			then[i] = c.DeepCopy()
			then[i].Spec.DNSWeight = new(int32)
			then[i].Spec.Taints = append(then[i].Spec.Taints, corev1.Taint{Key: v1beta1.TaintDrain, Effect: corev1.TaintEffectNoExecute})
		}
	}
	return then
}

// moves are the objects that have replicas in a cluster that is lost, in the order in which they are placed in the
// clusters as they are then.
func moves(in reviewInput, then []*v1beta1.Cluster, lost []string) (all []v1beta1.ReplicaMove) {
	w := placement.NewWorld(then, in.policies)
	decisions := placement.DecideAll(in.objects, w, in.now)
	for _, i := range placement.Order(in.objects, w) {
		if m, ok := move(&in.objects[i], &decisions[i], lost); ok {
			all = append(all, m)
		}
	}
	return all
}

// move says how the replicas of one object would move; false where it has none in a cluster that is lost. A Job that is finished has
// none.
func move(o *placement.Object, d *placement.Decision, lost []string) (m v1beta1.ReplicaMove, ok bool) {
	m = v1beta1.ReplicaMove{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Clusters: []v1beta1.ReplicaChange{}}
	if o.Current == nil || !o.Divided || o.Finished {
		return m, false
	}
	before, after := o.Current.Clusters, d.Placement.Clusters
	var stay []string
	for _, name := range lost {
		if before[name] > 0 {
			ok = true
		}
		if n := min(before[name], after[name]); n > 0 {
			stay = append(stay, fmt.Sprintf("%d stay in %s%s", n, name, reason(d, name)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(union(before, after))) {
		if before[name] != after[name] {
			m.Clusters = append(m.Clusters, v1beta1.ReplicaChange{
				Cluster: name, Before: before[name], After: after[name], Reason: strings.Join(d.Reasons[name], "; "),
			})
		}
	}
	m.Unplaced, m.Reason = max(0, d.Placement.Unplaced-o.Current.Unplaced)+d.Stranded, strings.Join(stay, "; ")
	return m, ok
}

func reason(d *placement.Decision, cluster string) string {
	why := d.Reasons[cluster]
	if len(why) == 0 {
		return ""
	}
	return " (" + strings.Join(why, ", ") + ")"
}

func union(a, b map[string]int64) map[string]int64 {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]int64{}
	}
	maps.Copy(out, b)
	return out
}

// recordChanges are the DNS record sets that would change, sorted by name and type.
func recordChanges(in reviewInput, then []*v1beta1.Cluster) (changes []v1beta1.RecordChange) {
	if in.info == nil {
		return nil
	}
	zone, err := dnsprovider.CanonicalName(in.info.DNSZone)
	if err != nil {
		return nil // the controllers do not start with such a zone
	}
	sets := func(clusters []*v1beta1.Cluster) []dnsprovider.RRSet {
		held := failover.CutOff(clusters, in.settings(), in.now)
		input := names.Input{Federation: in.info.Name, Zone: zone, TTL: uint32(in.info.DNSTTL / time.Second), Objects: in.named}
		for _, c := range clusters {
			input.Clusters = append(input.Clusters, names.ClusterOf(c, held))
		}
		return names.Records(input).Records
	}
	type key struct{ name, kind string }
	all := map[key]*v1beta1.RecordChange{}
	at := func(set dnsprovider.RRSet) *v1beta1.RecordChange {
		k := key{set.Name, string(set.Type)}
		if all[k] == nil {
			all[k] = &v1beta1.RecordChange{Name: k.name, Type: k.kind}
		}
		return all[k]
	}
	for _, set := range sets(in.clusters) {
		at(set).Before = set.Rdata
	}
	for _, set := range sets(then) {
		at(set).After = set.Rdata
	}
	for _, c := range all {
		if !slices.Equal(c.Before, c.After) {
			changes = append(changes, *c)
		}
	}
	slices.SortFunc(changes, func(a, b v1beta1.RecordChange) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Type, b.Type))
	})
	return changes
}
