package fleettest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry"
	"federation/clusterregistry/capacity/room"
	"federation/controllers/fleettest/memapi"
)

// Place is where a member is, and how large.
type Place struct {
	Name, Region, Zone string
	// Nodes that it has, with room for Pods pods on each. 0 pods: nobody counts the room.
	Nodes, Pods int
	// Labels of its Cluster.
	Labels map[string]string
}

// Never, as the delay of pods, is for pods that do not get ready.
const Never = time.Duration(-1)

// workloadKey names a workload in whichever cluster.
type workloadKey struct{ resource, namespace, name string }

// Member is a cluster: an API and what goes on behind it. Everything but its Wire belongs to the goroutine of the world.
type Member struct {
	Place
	API  *memapi.API
	Wire *Wire

	// alias: it is another member by another name, which does what is done there.
	alias         bool
	index         int
	kubelet       *memapi.Client
	pods          podRunner
	nodes         nodes
	loadBalancers loadBalancers
	autoscaling   autoscaling
	served        map[workloadKey]served
	// replaced is when all that its API holds was last replaced: by a backup, or by nothing.
	replaced time.Time
	seen     uint64 // version of the API after the last step
	// fault is what was wrong at the last step; faultSince is since when.
	fault      condition
	faultSince time.Time
}

// podRunner runs the pods of a cluster.
type podRunner struct {
	sets  map[workloadKey]*pods
	delay time.Duration // from a pod's being asked for to its being ready
	quota int           // no more pods than that are made; 0: as many as are asked for
	// ahead is by how much the cluster's clock is ahead of ours, in what it says of pods that it cannot make.
	ahead time.Duration
	// rounds counts what may have changed pods, be it time alone. full is what was found in one of them.
	rounds *uint64
	full   roomIn
	// dropped counts the ready pods that the last step took away because fewer were asked for.
	dropped map[workloadKey]int
	due     time.Time // when pods change by time alone; zero: not
}

// nodes are those of a cluster.
type nodes struct {
	wasDead bool // they had no power at the last step
	// boot is how long they take to start when the cluster has its power again; up is when they have.
	boot time.Duration
	up   time.Time
	// renewed is when they last said that they live.
	renewed time.Time
	// agentsLease has their agents drop what comes from outside.
	agentsLease coordinationv1.Lease
}

// loadBalancers are those of a cluster.
type loadBalancers struct {
	cluster int // the index of the cluster
	given   int // how many addresses were
	// addresses are those that they ever had.
	addresses map[string]bool
}

// autoscaling is what autoscalers go by, and did.
type autoscaling struct {
	load   map[workloadKey]int  // how many pods an autoscaler would like to have
	scaled map[workloadKey]bool // of what the last step changed the number for one
}

// defaultBoot is how long nodes take to start, if no command says otherwise.
const defaultBoot = 20 * time.Second

// pods are those of one workload.
type pods struct {
	list []*pod
	// of is the workload as it was last seen, and template what its pods are to be.
	of       *unstructured.Unstructured
	template string
	// uid is that of the workload: pods do not outlive it.
	uid string
	// refused is since when the quota leaves no room for one more; zero where it does.
	refused time.Time
}

type pod struct {
	template  string
	since     time.Time
	scheduled bool
	node      int
	ready     time.Time // when it is, or will be, ready; zero: never
}

func (p *pod) isReady(now time.Time) bool {
	return p.scheduled && !p.ready.IsZero() && !now.Before(p.ready)
}

func newMember(p Place, index int, panics *panics, onWrite func(string, sender, memapi.Request, error)) *Member {
	api := memapi.New(memapi.Options{Resources: memberResources, Admit: admitInMember})
	m := &Member{
		Place: p, API: api, Wire: newWire(p.Name, api, panics, onWrite), index: index, kubelet: api.Client("kubelet", nil),
		pods:          podRunner{sets: map[workloadKey]*pods{}, delay: 2 * time.Second, rounds: new(uint64), dropped: map[workloadKey]int{}},
		nodes:         nodes{boot: defaultBoot},
		loadBalancers: loadBalancers{cluster: index, addresses: map[string]bool{}},
		autoscaling:   autoscaling{load: map[workloadKey]int{}, scaled: map[workloadKey]bool{}},
	}
	bootstrap(api)
	return m
}

// accept has the namespace default accept a federation's objects, as a join does.
func (m *Member) accept(federation string) {
	label := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, v1beta1.AcceptLabel, federation)
	if _, err := m.API.Client("join", nil).Resource(namespaces).Patch(context.Background(), metav1.NamespaceDefault, types.MergePatchType, []byte(label), metav1.PatchOptions{}); err != nil {
		panic(err) // it is there
	}
}

// uid is the identity of the cluster. UIDs are unique within one API only, so it has the number of the cluster, too.
func (m *Member) uid() string {
	ns := m.API.Get(namespaces, "", metav1.NamespaceSystem)
	if ns == nil {
		return ""
	}
	return fmt.Sprintf("%d-%s", m.index, ns.GetUID())
}

// slow reports whether the member answers no look in time.
func (m *Member) slow() bool { return m.Wire.Latency() >= clusterregistry.DefaultTimeout }

// condition is what is wrong with a member.
type condition struct {
	fault Fault
	slow  bool
}

// condition is what is wrong with the member now.
func (m *Member) condition() condition { return condition{m.Wire.Fault(), m.slow()} }

// step lets the cluster do what is due. Nothing happens in one that is dead. When it comes back, its API says what was so before: its pods
// start again with its nodes, and only then statuses are written.
func (m *Member) step(now time.Time) {
	if fault := m.condition(); fault != m.fault {
		m.fault, m.faultSince = fault, now
	}
	defer m.nodes.renew(now)
	if m.alias {
		return
	}
	clear(m.pods.dropped)
	clear(m.autoscaling.scaled)
	if m.Wire.Fault() == Dead {
		m.nodes.wasDead = true
		return
	}
	if m.nodes.wasDead {
		*m.pods.rounds++
		m.nodes.wasDead, m.nodes.up = false, now.Add(m.nodes.boot)
		m.pods.stop()
	}
	if now.Before(m.nodes.up) {
		return
	}
	if !m.nodes.up.IsZero() {
		m.nodes.up = time.Time{}
		m.pods.startAll(now)
		m.seen = 0
	}
	version := m.API.Version()
	if version == m.seen && (m.pods.due.IsZero() || now.Before(m.pods.due)) {
		return
	}
	*m.pods.rounds++
	m.API.Collect()
	establish(m.API, m.kubelet)
	m.pods.due = time.Time{}
	m.autoscale()
	m.workloads(now)
	m.services(now)
	m.seen = version // not what it is by now: somebody may have written meanwhile
}

func (r *podRunner) stop() {
	for _, set := range r.sets {
		for _, p := range set.list {
			p.ready = time.Time{}
		}
	}
}

func (r *podRunner) startAll(now time.Time) {
	for _, set := range r.sets {
		for _, p := range set.list {
			if p.since = now; p.scheduled {
				r.start(p, now)
			}
		}
	}
}

// renewEvery is how often nodes say that they live.
const renewEvery = 10 * time.Second

// renew has nodes that run say that they live.
func (n *nodes) renew(now time.Time) {
	if !n.areSilent() && now.Sub(n.renewed) >= renewEvery {
		n.renewed = now
	}
}

// areSilent reports whether nothing has been heard of the cluster's nodes since its power is back (ADR 56).
func (n *nodes) areSilent() bool { return n.wasDead || !n.up.IsZero() }

// FailPods makes n ready pods of a workload start anew, as crashed ones do.
func (m *Member) FailPods(k workloadKey, n int, now time.Time) {
	if set := m.pods.sets[k]; set != nil {
		for _, p := range set.list {
			if n > 0 && p.isReady(now) {
				n--
				m.pods.start(p, now)
			}
		}
	}
	m.seen = 0
}

// SetDelay changes how long pods take to get ready: those to come, and those that are not ready yet.
func (m *Member) SetDelay(d time.Duration, now time.Time) {
	m.pods.delay = d
	for _, set := range m.pods.sets {
		for _, p := range set.list {
			if p.scheduled && !p.isReady(now) {
				m.pods.start(p, now)
			}
		}
	}
	m.seen = 0
}

func (r *podRunner) start(p *pod, now time.Time) {
	p.ready = time.Time{}
	if r.delay != Never {
		p.ready = now.Add(r.delay)
		r.wakeAt(p.ready)
	}
}

func (r *podRunner) wakeAt(t time.Time) {
	if r.due.IsZero() || t.Before(r.due) {
		r.due = t
	}
}

// Ready counts the ready pods of a workload; none in a cluster that is dead.
func (m *Member) Ready(k workloadKey, now time.Time) (n int) {
	if set := m.pods.sets[k]; set != nil && m.Wire.Fault() != Dead {
		for _, p := range set.list {
			if p.isReady(now) {
				n++
			}
		}
	}
	return n
}

// workloads makes the pods of each workload what it asks for, and writes its status.
func (m *Member) workloads(now time.Time) {
	there := map[workloadKey]bool{}
	type found struct {
		workload
		object *unstructured.Unstructured
	}
	var all []found
	for _, w := range workloads {
		for _, u := range m.API.List(w.resource, nil) {
			k := workloadKey{w.resource.Resource, u.GetNamespace(), u.GetName()}
			there[k] = true
			m.pods.resize(k, u, w.wanted(u, m), now)
			all = append(all, found{w, u})
		}
	}
	for k, set := range m.pods.sets {
		if !there[k] {
			m.pods.dropped[k] += readyIn(set.list, now)
			delete(m.pods.sets, k)
		}
	}
	m.schedule(now)
	for _, f := range all {
		set := m.pods.sets[workloadKey{f.resource.Resource, f.object.GetNamespace(), f.object.GetName()}]
		m.writeStatus(f.resource, f.object, f.status(f.object, countPods(set, set.template, now)))
		for _, p := range set.list {
			if p.scheduled && !p.ready.IsZero() && now.Before(p.ready) {
				m.pods.wakeAt(p.ready)
			}
		}
	}
}

// resize brings a workload to its number of pods. Those of an older template are replaced one by one.
func (r *podRunner) resize(k workloadKey, u *unstructured.Unstructured, wanted int, now time.Time) {
	set := r.sets[k]
	if set == nil || set.uid != string(u.GetUID()) {
		if set != nil {
			r.dropped[k] += readyIn(set.list, now)
		}
		set = &pods{uid: string(u.GetUID())}
		r.sets[k] = set
	}
	template := set.templateOf(u)
	if k.resource == "replicasets" {
		for _, p := range set.list {
			p.template = template // a ReplicaSet leaves the pods that it has as they are
		}
	}
	updated, updatedReady := 0, 0
	for _, p := range set.list {
		if p.template == template {
			updated++
			if p.isReady(now) {
				updatedReady++
			}
		}
	}
	before := readyIn(set.list, now)
	keep := wanted
	if updated < wanted && len(set.list) >= wanted || updatedReady < wanted && updated < len(set.list) {
		if keep++; before == len(set.list) && len(set.list) > wanted {
			keep-- // the new one is ready: an old one may go
		}
		r.wakeAt(now.Add(tick))
	}
	if len(set.list) > keep {
		slices.SortStableFunc(set.list, func(a, b *pod) int { return cmp.Compare(worth(b, template, now), worth(a, template, now)) })
		set.list = set.list[:keep]
	}
	for ; updated < wanted && len(set.list) < keep && r.mayMake(now); updated++ {
		set.list = append(set.list, &pod{template: template, since: now})
	}
	if made := updated >= wanted || len(set.list) >= keep; made {
		set.refused = time.Time{}
	} else if set.refused.IsZero() {
		set.refused = now.Add(r.ahead)
	}
	r.dropped[k] += max(0, before-readyIn(set.list, now))
}

// mayMake reports whether the quota leaves a pod. Where it does not, the member tries again.
func (r *podRunner) mayMake(now time.Time) bool {
	if r.quota == 0 {
		return true
	}
	sum := 0
	for _, set := range r.sets {
		sum += len(set.list)
	}
	if sum >= r.quota {
		r.wakeAt(now.Add(time.Second))
	}
	return sum < r.quota
}

// worth orders pods by what is lost with them: those of little worth go first.
func worth(p *pod, template string, now time.Time) (n int) {
	if p.isReady(now) {
		n += 4
	}
	if p.template == template {
		n += 2
	}
	if p.scheduled {
		n++
	}
	return n
}

func readyIn(list []*pod, now time.Time) (n int) {
	for _, p := range list {
		if p.isReady(now) {
			n++
		}
	}
	return n
}

// schedule finds room for pods, those that have waited longest first.
func (m *Member) schedule(now time.Time) {
	var waiting []*pod
	used, on := 0, make([]int, max(1, m.Nodes))
	for _, k := range slices.SortedFunc(maps.Keys(m.pods.sets), func(a, b workloadKey) int {
		return cmp.Or(cmp.Compare(a.resource, b.resource), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	}) {
		for _, p := range m.pods.sets[k].list {
			if p.scheduled {
				used++
				on[p.node]++
			} else {
				waiting = append(waiting, p)
			}
		}
	}
	slices.SortStableFunc(waiting, func(a, b *pod) int { return a.since.Compare(b.since) })
	for _, p := range waiting {
		if m.Pods > 0 && used >= m.Nodes*m.Pods {
			return
		}
		used++
		for i := range on {
			if on[i] < on[p.node] {
				p.node = i
			}
		}
		on[p.node]++
		p.scheduled = true
		m.pods.start(p, now)
	}
}

// roomIn is what a member had room for in a round.
type roomIn struct {
	round    uint64
	capacity *v1beta1.ClusterCapacity
}

// room is what the member has room for. It is counted again when its pods may have changed, or while time alone changes what counts.
func (m *Member) room(now time.Time) *v1beta1.ClusterCapacity {
	if m.Pods == 0 {
		return nil
	}
	if known := m.pods.full; known.capacity != nil && known.round == *m.pods.rounds {
		again := *known.capacity
		again.ObservedAt = metav1.NewTime(now.Truncate(time.Second))
		return &again
	}
	capacity, waits := m.countRoom(now)
	if m.pods.full = (roomIn{*m.pods.rounds, capacity}); waits {
		m.pods.full = roomIn{}
	}
	return capacity
}

// countRoom counts what there is room for, and reports whether pods wait for room.
func (m *Member) countRoom(now time.Time) (capacity *v1beta1.ClusterCapacity, waits bool) {
	nodes := make([]room.Node, m.Nodes)
	for i := range nodes {
		nodes[i] = room.Node{Name: strconv.Itoa(i), Usable: true, Allocatable: room.Amounts{corev1.ResourcePods: int64(m.Pods)}}
	}
	var all []room.Pod
	for k, set := range m.pods.sets {
		for _, p := range set.list {
			one := room.Pod{Node: strconv.Itoa(p.node), Workload: room.Workload{Kind: kindOf(k.resource), Namespace: k.namespace, Name: k.name}}
			if !p.scheduled {
				one.Node, one.Unschedulable, waits = "", p.since, true
			}
			all = append(all, one)
		}
	}
	sum := room.Summarize(nodes, all, room.Settings{Unschedulable: time.Minute}, now)
	return &sum.ClusterCapacity, waits
}

func kindOf(resource string) string {
	for _, k := range v1beta1.FederatedKinds {
		if k.Resource.Resource == resource {
			return k.Kind
		}
	}
	return ""
}

// counts sums up the pods of a workload.
type counts struct {
	all, ready, updated, updatedReady int
	refused                           time.Time
}

func countPods(set *pods, template string, now time.Time) (c counts) {
	c.refused = set.refused
	for _, p := range set.list {
		c.all++
		if p.isReady(now) {
			c.ready++
		}
		if p.template == template {
			c.updated++
			if p.isReady(now) {
				c.updatedReady++
			}
		}
	}
	return c
}

// writeStatus writes a status that changed. Nobody else in the member writes there.
func (m *Member) writeStatus(gvr schema.GroupVersionResource, u *unstructured.Unstructured, status map[string]any) {
	patchStatus(m.kubelet, gvr, u, status)
}
