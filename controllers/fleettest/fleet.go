package fleettest

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/credential"
	failoverplan "federation/controllers/failover/plan"
	"federation/controllers/fleettest/memapi"
	"federation/controllers/placement"
)

// Settings are those of the federation, and of those who wait for it.
type Settings struct {
	// Grace is how long a cluster may be away before its replicas are placed elsewhere.
	Grace time.Duration
	// Stable is how long a cluster that has returned waits for each further share.
	Stable time.Duration
	// Quiet is for how long nothing may change before the fleet counts as settled: longer than any pause of the
	// controllers after which something may.
	Quiet time.Duration
}

// DefaultSettings are those of the federation.
func DefaultSettings() Settings {
	d := failoverplan.DefaultSettings()
	return Settings{Grace: d.GracePeriod, Stable: d.Stable, Quiet: d.Stable + 35*time.Second}
}

// failover are the settings of that controller.
func (s Settings) failover() failoverplan.Settings {
	out := failoverplan.DefaultSettings()
	out.GracePeriod, out.Stable = s.Grace, s.Stable
	return out
}

// Fleet is a federation with its members. It lives in a bubble of testing/synctest: wait is synctest.Wait.
type Fleet struct {
	Settings   Settings
	Federation *memapi.API
	DNS        *DNS

	ctx       context.Context
	cancel    context.CancelFunc
	wait      func()
	began     time.Time
	uid       string
	user      *memapi.Client
	events    *events
	leases    *memapi.API
	world     sync.WaitGroup
	processes processes
	uplinks   uplinks
	tally     *Tally
	panics    panics
	gate      front
	readiness atomic.Bool // it is kept
	clusters  clusterReader

	mu         sync.Mutex // guards what follows and all of the members; never held while waiting
	members    map[string]*Member
	sorted     []*Member // by name; nil: to be sorted again
	laws       laws
	writes     []string
	resting    bool     // nobody may write anything
	made       []string // what each write of a resting federation made of its object
	crashAfter int
	disturbed  time.Time // when something was last wrong with the federation itself
	failures   []error
}

// New makes a fleet without members and starts its federation.
func New(ctx context.Context, s Settings, wait func()) (*Fleet, error) {
	ctx, cancel := context.WithCancel(ctx)
	f := &Fleet{Settings: s, DNS: &DNS{}, ctx: ctx, cancel: cancel, wait: wait, began: time.Now(), events: &events{}, leases: newLeases(), members: map[string]*Member{}, laws: newLaws(), tally: NewTally()}
	f.processes = processes{fleet: f, count: 1, turns: make(chan struct{}, 1)}
	for i := range f.uplinks {
		f.uplinks[i] = newUplink(f)
	}
	f.gate = front{policies: map[string]*v1beta1.PlacementPolicy{}, placer: placement.NewAdmitter()}
	f.Federation = memapi.New(memapi.Options{Resources: federationResources, Admit: f.gate.admit, Deleting: f.gate.deleting})
	f.clusters.api = f.Federation
	f.user = f.Federation.Client("kubectl", nil)
	bootstrap(f.Federation)
	f.uid = string(f.Federation.Get(namespaces, "", metav1.NamespaceSystem).GetUID())
	f.world.Go((&worldClock{fleet: f}).run)
	f.world.Go(f.followFromGate)
	f.processes.start()
	return f, nil
}

// followFromGate has the API server know what it places new objects by.
func (f *Fleet) followFromGate() {
	from := newInformers(f.Federation.Client("apiserver", nil), "", nil)
	_ = f.gate.placer.Follow(f.ctx, from.ForResource, from.Start) // it fails only when all ends
}

// Close ends everything.
func (f *Fleet) Close() {
	for _, m := range f.Members() {
		m.Wire.Set(Well)
	}
	for _, l := range f.uplinks {
		l.change(func(faults *apiFaults) { *faults = apiFaults{} })
	}
	f.wait() // what waited has been carried out
	for _, c := range f.processes.running {
		c.end()
	}
	f.cancel()
	f.world.Wait()
	f.wait()
}

// worldClock lets the world go on: the members, the garbage collectors, and those who watch over the laws.
type worldClock struct {
	fleet *Fleet
	// seen is the federation's version, stood that of all APIs, and noted how much was changed at the federation, all when it was last looked at.
	seen, stood, noted uint64
}

// run lets the world go on until the fleet ends.
func (c *worldClock) run() {
	every := time.NewTicker(tick)
	defer every.Stop()
	for {
		select {
		case <-c.fleet.ctx.Done():
			return
		case <-every.C:
		}
		c.turn()
		c.fleet.processes.replaceDead()
	}
}

// turn has all do what is due.
func (c *worldClock) turn() {
	f := c.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	for _, m := range f.byName() {
		m.step(now)
	}
	if v := f.Federation.Version(); v != c.seen {
		f.Federation.Collect()
		establish(f.Federation, f.user)
		c.seen = v
	}
	if f.uplinks.anyDeaf() {
		f.laws.replicas.unheard(now)
	}
	if v := f.sum(); v != c.stood {
		if n := f.Federation.Changes(); n != c.noted {
			f.laws.moves.noteFirst(f)
			c.noted = n
		}
		f.failures = append(f.failures, f.laws.replicas.check(f, now)...)
		c.stood = v
	}
	f.laws.moves.noteReached(f, now)
	f.laws.moves.noteEmptied(f, now)
	f.failures = append(f.failures, f.laws.dns.checkZone(f, now)...)
	f.failures = append(f.failures, unexpectedPanics(f)...)
}

// Members returns all members, sorted by name.
func (f *Fleet) Members() []*Member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.byName())
}

// byName returns all members, sorted by name. It is called with the fleet locked.
func (f *Fleet) byName() []*Member {
	if f.sorted == nil {
		f.sorted = slices.SortedFunc(maps.Values(f.members), func(a, b *Member) int { return strings.Compare(a.Name, b.Name) })
	}
	return f.sorted
}

// setMember has a member be there by a name, or none; it is called with the fleet locked.
func (f *Fleet) setMember(name string, m *Member) {
	f.members[name], f.sorted = m, nil
	if m == nil {
		delete(f.members, name)
	}
}

// Member returns a member by name, nil where there is none.
func (f *Fleet) Member(name string) *Member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.members[name]
}

func (f *Fleet) joined() map[string]*Member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.members)
}

// Join makes a cluster and lets it join. One that is there already joins again, with what it holds.
func (f *Fleet) Join(p Place) error {
	f.mu.Lock()
	if f.members[p.Name] == nil {
		f.setMember(p.Name, newMember(p, len(f.members)+1, &f.panics, f.wrote))
		f.members[p.Name].accept(f.uid)
	}
	f.mu.Unlock()
	if err := f.storeCredential(p.Name); err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": "Cluster",
		"spec": map[string]any{
			"serverAddressByClientCIDRs": []any{map[string]any{"clientCIDR": "0.0.0.0/0", "serverAddress": p.Name + ":6443"}},
			"secretRef":                  map[string]any{"name": p.Name},
		},
	}}
	u.SetName(p.Name)
	u.SetLabels(p.Labels)
	_, err := f.user.Resource(v1beta1.ClustersResource).Create(f.ctx, u, metav1.CreateOptions{})
	return err
}

// storeCredential stores the credential of a cluster, which any is, unless it is there.
func (f *Fleet) storeCredential(cluster string) error {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": v1beta1.FederationNamespace, "name": cluster},
		"data": map[string]any{credential.TokenKey: base64.StdEncoding.EncodeToString([]byte("a token"))},
	}}
	_, err := f.user.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(v1beta1.FederationNamespace).Create(f.ctx, u, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// readCluster is a Cluster and what it was read from: each version is read once, and looked for again when anything has changed.
type readCluster struct {
	from    *unstructured.Unstructured
	cluster *v1beta1.Cluster
	changes uint64
}

// clusterReader reads Clusters.
type clusterReader struct {
	api   *memapi.API
	known sync.Map // name → readCluster
}

// named returns a Cluster, nil where there is none. It must not be changed.
func (r *clusterReader) named(name string) *v1beta1.Cluster {
	now := r.api.Changes()
	before, _ := r.known.Load(name)
	known, _ := before.(readCluster)
	if known.changes == now {
		return known.cluster
	}
	is := readCluster{r.api.Get(v1beta1.ClustersResource, "", name), known.cluster, now}
	if is.from != known.from {
		is.cluster = readClusterOf(is.from)
	}
	r.known.Store(name, is)
	return is.cluster
}

func readClusterOf(u *unstructured.Unstructured) *v1beta1.Cluster {
	if u == nil {
		return nil
	}
	c := &v1beta1.Cluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, c); err != nil {
		panic(err) // the API stores none that cannot be read
	}
	return c
}

// room is what a member has room for, nil where nobody counts.
func (f *Fleet) room(m *Member) *v1beta1.ClusterCapacity {
	f.mu.Lock()
	defer f.mu.Unlock()
	return m.room(time.Now())
}

// Unjoin takes a cluster's Cluster away. The cluster lives on.
func (f *Fleet) Unjoin(name string) error {
	return f.user.Resource(v1beta1.ClustersResource).Delete(f.ctx, name, metav1.DeleteOptions{})
}

// CrashAfter has a process die right after the n-th write from now, before it hears the answer.
func (f *Fleet) CrashAfter(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.crashAfter = n
}

// sends notes that a write to the federation's API is on its way.
func (f *Fleet) sends(from sender, r memapi.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failures = append(f.failures, f.laws.writes.sends("federation", from, r)...)
}

// wrote notes a write of the federation that was carried out.
func (f *Fleet) wrote(where string, from sender, r memapi.Request, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && where == "federation" {
		f.failures = append(f.failures, f.laws.moves.check(f, r, time.Now())...)
		if from.leads {
			f.tally.check(overtaken)
		}
		f.failures = append(f.failures, f.laws.writes.decides(from, r)...)
	}
	if err == nil && where != "federation" {
		f.failures = append(f.failures, takenAway(f, where, r)...)
		f.failures = append(f.failures, f.laws.foreign.checkWrite(f, where, r, time.Now())...)
		f.failures = append(f.failures, f.laws.adoptions.check(f, where, r)...)
		f.failures = append(f.failures, f.laws.podNeeds.check(f, where, r, time.Now())...)
		f.failures = append(f.failures, f.laws.unknown.check(f, where, r, time.Now())...)
		if from.unawaited && from.changedPods { // more may be asked for by now, which it could not know
			f.laws.taken[workloadKey{r.Resource.Resource, r.Namespace, r.Name}] = time.Now()
		}
		if from.overtaken {
			f.tally.check(lateWrites)
			if from.changedPods {
				f.failures = append(f.failures, against(lateWrites, "%s: %s of %s %s/%s", where, r.Verb, r.Resource.Resource, r.Namespace, r.Name))
			}
		}
		f.tally.check(oneWriter)
		f.tally.check("no copy is written again and again")
		f.failures = append(f.failures, f.laws.writes.sends(where, from, r)...) // over the wire to a member it takes no time
		if broken := f.laws.writes.wrote(where, r, time.Now()); len(broken) > 0 {
			f.failures = append(f.failures, broken...)
			f.cancel() // what writes without end, without a pause even, would not let time go by
		}
	}
	line := fmt.Sprintf("%s: %s %s", where, r.Verb, r.Resource.Resource)
	if r.Subresource != "" {
		line += "/" + r.Subresource
	}
	line += " " + strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")
	switch {
	case err != nil && isForeign(f, where, r):
		line += hasTheName
	case err != nil:
		line += " (refused)"
	}
	f.writes = append(f.writes, line)
	if f.resting && where == "federation" {
		if u := f.Federation.Get(r.Resource, r.Namespace, r.Name); u != nil {
			f.made = append(f.made, fmt.Sprintf("%s process %d: %s: %s", time.Now().UTC().Format(time.TimeOnly), from.process, line, contentOf(u)))
		}
	}
	if f.crashAfter > 0 && len(f.processes.running) > 0 {
		if f.crashAfter--; f.crashAfter == 0 {
			f.processes.running[len(f.writes)%len(f.processes.running)].die()
		}
	}
}

// Tally is what was injected and checked so far.
func (f *Fleet) Tally() *Tally { return f.tally }

// Writes returns what the federation wrote since the last call, here and in members, in order.
func (f *Fleet) Writes() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.writes
	f.writes = nil
	return out
}

// setResting says whether nobody may write anything from now on. It returns what writes made of objects since it was last said.
func (f *Fleet) setResting(resting bool) (made []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	made, f.made, f.resting = f.made, nil, resting
	return made
}

func (f *Fleet) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failures = append(f.failures, err)
}

// Failures returns what went against the laws since the last call.
func (f *Fleet) Failures() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := errors.Join(f.failures...)
	f.failures = nil
	return err
}

// Pass lets time go by.
func (f *Fleet) Pass(d time.Duration) {
	time.Sleep(d)
	f.wait()
}

// settleLimit is when we no longer believe that a fleet settles.
const settleLimit = time.Hour

// Settle waits until nothing has changed for Settings.Quiet, and fails when that does not come.
func (f *Fleet) Settle() error {
	f.tally.check("the fleet settles")
	quiet := time.Duration(0)
	for waited := time.Duration(0); waited < settleLimit; waited += time.Second {
		before := f.versions()
		f.Pass(time.Second)
		if f.versions() != before {
			quiet = 0
		} else if anyFailsBack(f) || anyNodesStart(f) {
			quiet = 0 // something will change, by time alone
		} else if quiet += time.Second; quiet >= f.Settings.Quiet {
			return nil
		}
	}
	last := f.Writes()
	return against("the fleet settles", "it does not within %s; the last writes are\n%s", settleLimit, strings.Join(last[max(0, len(last)-20):], "\n"))
}

// anyFailsBack reports whether a cluster that can be used is to get more of what it would have.
func anyFailsBack(f *Fleet) bool {
	return slices.ContainsFunc(settledMembers(f), func(m *Member) bool {
		return f.clusters.named(m.Name).Phase() == v1beta1.PhaseFailingBack
	})
}

// anyNodesStart reports whether the nodes of a cluster that has its power again are yet to start.
func anyNodesStart(f *Fleet) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		if m.Wire.Fault() != Dead && m.nodes.areSilent() {
			return true
		}
	}
	return false
}

// versions sums up the versions of all APIs: it grows with each change.
func (f *Fleet) versions() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sum() + uint64(f.DNS.Applied())
}

// sum is called with the fleet locked.
func (f *Fleet) sum() uint64 {
	sum := f.Federation.Version()
	for _, m := range f.members {
		sum += m.API.Version()
	}
	return sum
}
