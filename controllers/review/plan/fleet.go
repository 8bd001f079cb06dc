package plan

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"federation/apiserver/apis/federation/v1beta1"
	failoverplan "federation/controllers/failover/plan"
	servicednsplan "federation/controllers/servicedns/plan"
	"federation/dnsprovider"
	"federation/scheduler"
)

// Fleet answers repeated questions about losses. It knows which objects are in which clusters, and which of the others
// may take room, so that the cost of a loss depends on what is affected and not on the size of the fleet. Make it with
// NewFleet, and use it from one goroutine.
type Fleet struct {
	clusters []*v1beta1.Cluster
	policies []*v1beta1.PlacementPolicy
	info     v1beta1.Info
	zone     string // canonical; "" if names are not known
	settings failoverplan.Settings
	world    *scheduler.World // current
	usable   map[string]usable
	// rules counts the changes of more than the room in clusters: of what clusters may be used for, and of policies. clusterRules and policyRules, by
	// namespace, are what it was after the last of each.
	rules, clusterRules int
	policyRules         map[string]int

	objects  map[string]*scheduler.Object
	at       index // of objects
	unsteady map[string]bool
	named    map[string]*servicednsplan.Object
	namedAt  index
	claims   *servicednsplan.Claims
}

// usable is what a Cluster may be used for.
type usable struct {
	of  *v1beta1.Cluster
	how string
}

// index has keys by cluster.
type index map[string]map[string]bool

func (x index) add(key string, clusters []string) {
	for _, c := range clusters {
		if x[c] == nil {
			x[c] = map[string]bool{}
		}
		x[c][key] = true
	}
}

func (x index) drop(key string, clusters []string) {
	for _, c := range clusters {
		if delete(x[c], key); len(x[c]) == 0 {
			delete(x, c)
		}
	}
}

// Touched is the effect of a change: the loss of these clusters, or of any, may differ.
type Touched struct {
	Clusters []string
	All      bool
}

// NewFleet returns an empty fleet of a federation with this configuration and these failover settings.
func NewFleet(info v1beta1.Info, settings failoverplan.Settings) *Fleet {
	zone, err := dnsprovider.CanonicalName(info.DNSZone)
	if err != nil {
		zone = ""
	}
	f := &Fleet{
		info: info, zone: zone, settings: settings, objects: map[string]*scheduler.Object{}, at: index{}, unsteady: map[string]bool{},
		named: map[string]*servicednsplan.Object{}, namedAt: index{}, claims: servicednsplan.NewClaims(servicednsplan.Zone{Federation: info.Name, Name: zone}), usable: map[string]usable{},
		policyRules: map[string]int{},
	}
	f.world = scheduler.NewWorld(nil, nil)
	return f
}

// SetWorld takes in the current Clusters and policies. It returns what is affected by changes of more than the room in clusters: all, by a change of what a
// cluster may be used for; by that of a policy, the clusters with objects of its namespace. The caller must not change them later.
func (f *Fleet) SetWorld(clusters []*v1beta1.Cluster, policies []*v1beta1.PlacementPolicy) (touched Touched) {
	now := map[string]usable{}
	all := len(clusters) != len(f.usable)
	for _, c := range clusters {
		was := f.usable[c.Name]
		is := was
		if was.of != c {
			is = usable{c, scheduler.Usability(c) + servicednsplan.Usability(c) + fmt.Sprint(failoverplan.Drilled(c), c.OutOfService(), c.DeletionTimestamp != nil)}
		}
		all = all || is.how != was.how
		now[c.Name] = is
	}
	affected := map[string]bool{}
	for _, key := range append(stuckIn(f.clusters), stuckIn(clusters)...) {
		affected[key] = true
	}
	ruled := changedPolicies(f.policies, policies)
	f.clusters, f.policies, f.usable = clusters, policies, now
	f.world = scheduler.NewWorld(clusters, policies)
	f.world.Terse = true
	if all || len(ruled) > 0 {
		f.rules++
	}
	if all {
		f.clusterRules, touched.All = f.rules, true
	}
	for namespace := range ruled {
		f.policyRules[namespace] = f.rules
	}
	if all || len(ruled) > 0 {
		for key, o := range f.objects {
			if all || ruled[o.Namespace] {
				affected[key] = true
			}
		}
	}
	in := map[string]bool{}
	for key := range affected {
		o := f.objects[key]
		if o == nil {
			continue
		}
		was := f.unsteady[key]
		if steady := f.setSteady(key, o); ruled[o.Namespace] {
			touched.All = touched.All || was || !steady
			for _, name := range clustersOf(o) {
				in[name] = true
			}
		}
	}
	touched.Clusters = slices.Sorted(maps.Keys(in))
	return touched
}

// changedPolicies returns the namespaces in which policies say something else than before.
func changedPolicies(before, after []*v1beta1.PlacementPolicy) map[string]bool {
	was, changed := map[string]*v1beta1.PlacementPolicy{}, map[string]bool{}
	for _, p := range before {
		was[p.Namespace+"/"+p.Name] = p
	}
	for _, p := range after {
		key := p.Namespace + "/" + p.Name
		if old := was[key]; old == nil || old != p && !saysTheSame(old, p) {
			changed[p.Namespace] = true
		}
		delete(was, key)
	}
	for _, p := range was {
		changed[p.Namespace] = true
	}
	return changed
}

func saysTheSame(a, b *v1beta1.PlacementPolicy) bool {
	return equality.Semantic.DeepEqual(a.Spec, b.Spec) && slices.Equal(a.Status.Clusters, b.Status.Clusters) && slices.Equal(a.Status.Home, b.Status.Home)
}

// AsksNoMore reports whether an object asks for no more than a version of it before.
func (f *Fleet) AsksNoMore(o, before *scheduler.Object) bool { return f.world.AsksNoMore(o, before) }

// stuckIn returns the keys of objects with pods that clusters report as unschedulable.
func stuckIn(clusters []*v1beta1.Cluster) (keys []string) {
	for _, c := range clusters {
		if c.Status.Capacity == nil {
			continue
		}
		for _, u := range c.Status.Capacity.Unschedulable {
			keys = append(keys, keyOf(u.Kind, u.Namespace, u.Name))
		}
	}
	return keys
}

func keyOf(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }

func (f *Fleet) setSteady(key string, o *scheduler.Object) (steady bool) {
	if steady = f.world.Steady(o); steady {
		delete(f.unsteady, key)
	} else {
		f.unsteady[key] = true
	}
	return steady
}

// Object returns an object with divided replicas as last taken in, or nil.
func (f *Fleet) Object(kind, namespace, name string) *scheduler.Object {
	return f.objects[keyOf(kind, namespace, name)]
}

// Set takes in the current state of an object with divided replicas.
func (f *Fleet) Set(o scheduler.Object) Touched {
	key := keyOf(o.Kind, o.Namespace, o.Name)
	if was := f.objects[key]; was != nil && scheduler.Alike(was, &o) {
		f.objects[key].Current = o.Current // which remembers more
		return Touched{}
	}
	touched := f.Drop(o.Kind, o.Namespace, o.Name)
	o.Compact() // requests are decoded once, not for each loss
	f.objects[key] = &o
	f.at.add(key, clustersOf(&o))
	touched.Clusters = union2(touched.Clusters, clustersOf(&o))
	touched.All = !f.setSteady(key, &o) || touched.All
	return touched
}

// Drop forgets an object.
func (f *Fleet) Drop(kind, namespace, name string) (touched Touched) {
	key := keyOf(kind, namespace, name)
	if was := f.objects[key]; was != nil {
		touched = Touched{Clusters: clustersOf(was), All: f.unsteady[key]}
		f.at.drop(key, touched.Clusters)
		delete(f.objects, key)
		delete(f.unsteady, key)
	}
	return touched
}

// clustersOf returns the clusters in which an object has replicas that can be lost.
func clustersOf(o *scheduler.Object) (some []string) {
	if o.Current == nil || o.Finished {
		return nil
	}
	for name, n := range o.Current.Clusters {
		if n > 0 {
			some = append(some, name)
		}
	}
	return some
}

func union2(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// SetNamed takes in the current state of an object with names in DNS.
func (f *Fleet) SetNamed(o servicednsplan.Object) Touched {
	if was := f.named[o.Key()]; was != nil && reflect.DeepEqual(was, &o) {
		return Touched{}
	}
	touched := f.DropNamed(o.Key())
	f.named[o.Key()] = &o
	f.namedAt.add(o.Key(), servedIn(&o))
	touched.Clusters = union2(touched.Clusters, servedIn(&o))
	f.addClaimants(&touched, f.claims.Set(&o))
	return touched
}

// DropNamed forgets an object that had names, by its Key.
func (f *Fleet) DropNamed(key string) (touched Touched) {
	if was := f.named[key]; was != nil {
		touched.Clusters = servedIn(was)
		f.namedAt.drop(key, touched.Clusters)
		delete(f.named, key)
		f.addClaimants(&touched, f.claims.Drop(key))
	}
	return touched
}

// addClaimants adds the clusters of the objects that claim the same hosts.
func (f *Fleet) addClaimants(touched *Touched, others []string) {
	for _, key := range others {
		if o := f.named[key]; o != nil {
			touched.Clusters = union2(touched.Clusters, servedIn(o))
		}
	}
}

func servedIn(o *servicednsplan.Object) (some []string) {
	if o.Ingresses == nil {
		return nil
	}
	for _, item := range o.Ingresses.Items {
		if item.Items != nil {
			some = append(some, item.Cluster)
		}
	}
	return some
}

// affectedBy returns the objects that must be decided for a loss, in no order.
func (f *Fleet) affectedBy(lost []string) (some []scheduler.Object) {
	keys := maps.Clone(f.unsteady)
	for _, c := range lost {
		maps.Copy(keys, f.at[c])
	}
	for key := range keys {
		some = append(some, *f.objects[key])
	}
	return some
}

// Objects returns how many objects with divided replicas there are, and how many of them may take room whatever is
// lost.
func (f *Fleet) Objects() (all, unsteady int) { return len(f.objects), len(f.unsteady) }

// inputAt returns the input of a review without the objects.
func (f *Fleet) inputAt(at time.Time) Input {
	return Input{Clusters: f.clusters, Policies: f.policies, Info: &f.info, Now: at}
}
