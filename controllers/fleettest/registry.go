package fleettest

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry"
	"federation/clusterregistry/capacity/room"
	"federation/clusterregistry/health"
	"federation/clusterregistry/isolation"
	drillplan "federation/controllers/drill/plan"
	failoverplan "federation/controllers/failover/plan"
)

// registry stands for clusterregistry: it looks at each member once a second, judges with health, writes the status
// of the Cluster, and has members engaged exactly while they are ready. Only the wire is another.
type registry struct {
	process int
	client  dynamic.Interface
	events  *events
	members func() map[string]*Member
	// cluster is a Cluster as an informer would have it, nil where there is none.
	cluster func(name string) *v1beta1.Cluster
	// room is what a member has room for, nil where nobody counts.
	room func(m *Member) *v1beta1.ClusterCapacity
	// silent reports whether nothing is heard of the nodes of a member.
	silent func(m *Member) bool

	// lease is an informer of Leases, among which is that by which drills isolate members.
	lease cache.SharedIndexInformer

	// reports: what is found of members is written to their Clusters. One process does.
	reports atomic.Bool

	mu        sync.Mutex
	keepers   map[string]*keeper
	followers []follower
	running   sync.WaitGroup
	isolation isolation.Seen
}

// keeper looks at one member.
type keeper struct {
	*registry
	member *Member
	stop   context.CancelFunc
	wake   chan struct{}
	state  health.State
	// uid is the identity of the member, as it was read last; engaged is that of the connection.
	uid, engaged string
	identified   time.Time
	probed       atomic.Pointer[failoverplan.Probe]
	live         context.Context // ends with the connection; nil while there is none
	leave        context.CancelFunc
}

// engager takes up work in a member until ctx is done.
type engager func(ctx context.Context, m *Member) error

// follower is told of members until its ctx is done.
type follower struct {
	ctx    context.Context
	engage engager
}

func (f follower) take(live context.Context, m *Member) {
	if f.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(live)
	context.AfterFunc(f.ctx, cancel)
	_ = f.engage(ctx, m) // it fails only for informers that have ended already
}

// follow tells e of the members that are connected, and of those that will be.
func (r *registry) follow(ctx context.Context, e engager) {
	r.mu.Lock()
	f := follower{ctx, e}
	r.followers = append(r.followers, f)
	live := map[*Member]context.Context{}
	for _, k := range r.keepers {
		if k.live != nil {
			live[k.member] = k.live
		}
	}
	r.mu.Unlock()
	for m, ctx := range live {
		f.take(ctx, m)
	}
}

// connected returns a member that is connected, or nil.
func (r *registry) connected(name string) *Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.keepers[name]; k != nil && k.live != nil {
		return k.member
	}
	return nil
}

// run starts and stops keepers as Clusters come and go, until ctx is done.
func (r *registry) run(ctx context.Context) error {
	defer r.running.Wait()
	go r.lease.RunWithContext(ctx)
	defer func() { // what ends cuts nobody off
		for _, m := range r.members() {
			m.Wire.Isolate(r.process, false)
		}
	}()
	for !r.lease.HasSynced() && ctx.Err() == nil { // nobody is reached before it is known whom a drill isolates
		_ = sleep(ctx, time.Millisecond)
	}
	for ctx.Err() == nil {
		r.isolate()
		for name, m := range r.members() {
			r.keep(ctx, name, m)
		}
		_ = sleep(ctx, 100*time.Millisecond)
	}
	return nil
}

// isolate cuts the process off from the members that the Lease of drills names, as clusterregistry does.
func (r *registry) isolate() {
	if !r.lease.HasSynced() {
		return
	}
	var lease *coordinationv1.Lease
	if obj, exists, _ := r.lease.GetIndexer().GetByKey(v1beta1.FederationNamespace + "/" + v1beta1.DrillLease); exists {
		lease, _ = typed(obj.(*unstructured.Unstructured), nil) // it is a Lease
	}
	r.mu.Lock()
	r.isolation.Observe(lease, time.Now())
	is := map[string]bool{}
	for _, name := range r.isolation.Clusters(time.Now()) {
		is[name] = true
	}
	r.mu.Unlock()
	for name, m := range r.members() {
		m.Wire.Isolate(r.process, is[name])
	}
}

// isolated are the members that the process has cut itself off from, and whether it has looked.
func (r *registry) isolated() (names []string, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.isolation.Clusters(time.Now())), r.isolation.Known()
}

// blackholed are the members that a drill has also taken from clients. Their node agents always hear of it.
func (r *registry) blackholed() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range r.isolation.Clusters(time.Now()) {
		if r.isolation.Blackhole(name, time.Now()).Drill != "" {
			names = append(names, name)
		}
	}
	return names
}

// agents are there on each node.
func agents(context.Context, string) drillplan.NodeAgents {
	return drillplan.NodeAgents{Nodes: 1, Able: 1}
}

// deadBehind are the isolated members that do not answer anyway.
func (r *registry) deadBehind() (names []string) {
	isolated, _ := r.isolated()
	for name, m := range r.members() {
		if slices.Contains(isolated, name) && m.Wire.ForAll() != Well && m.Wire.ForAll() != Expired && m.Wire.ForAll() != Unhealthy {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (r *registry) keep(ctx context.Context, name string, m *Member) {
	r.mu.Lock()
	kept := r.keepers[name] != nil
	r.mu.Unlock()
	if kept {
		return
	}
	if r.cluster(name) == nil {
		return // it has not joined
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	k := &keeper{registry: r, member: m, wake: make(chan struct{}, 1)}
	ctx, k.stop = context.WithCancel(ctx)
	r.keepers[name] = k
	r.running.Go(func() { k.run(ctx) })
}

// probes are the latest of this process.
func (r *registry) probes() map[string]failoverplan.Probe {
	r.mu.Lock()
	defer r.mu.Unlock()
	probes := map[string]failoverplan.Probe{}
	for name, k := range r.keepers {
		if p := k.probed.Load(); p != nil {
			probes[name] = *p
		}
	}
	return probes
}

// lookNow has a member looked at at once.
func (r *registry) lookNow(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.keepers[name]; k != nil {
		select {
		case k.wake <- struct{}{}:
		default:
		}
	}
}

func (k *keeper) run(ctx context.Context) {
	defer k.disconnect()
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.keepers, k.member.Name)
	}()
	first := true
	for ctx.Err() == nil {
		begin := time.Now()
		known := k.cluster(k.member.Name)
		if known == nil {
			return
		}
		if first {
			k.state, first = health.Restore(known.Status.Conditions), false
		}
		evidence := k.identify(known, k.member.Wire.look(ctx, k.process, clusterregistry.DefaultTimeout))
		if ctx.Err() != nil {
			return
		}
		verdict := health.Judge(k.state, evidence, health.DefaultPolicy(), time.Now())
		k.state = verdict.State
		k.probed.Store(&failoverplan.Probe{At: time.Now(), Healthy: evidence.Answer == health.Healthy, LostSince: k.state.LostSince(), Unclear: evidence.Answer.Unclear()})
		k.listen()
		k.connect(ctx)
		if latest := k.cluster(k.member.Name); latest != nil && k.reports.Load() {
			k.report(ctx, latest)
		}
		k.rest(ctx, begin, verdict.Next)
	}
}

// identifyEvery is how often the identity of a member is read that is connected.
const identifyEvery = 30 * time.Second

// identify does what clusterregistry does: it reads which cluster has answered, and does not use one that has another Cluster.
func (k *keeper) identify(known *v1beta1.Cluster, found health.Evidence) health.Evidence {
	if found.Answer == health.Healthy && (k.live == nil || time.Since(k.identified) >= identifyEvery) {
		k.uid, k.identified = k.member.uid(), time.Now()
	}
	k.state.UID = cmp.Or(k.uid, known.Status.UID)
	var joined []*v1beta1.Cluster
	for name := range k.members() {
		if c := k.cluster(name); c != nil {
			joined = append(joined, c)
		}
	}
	if used := health.DuplicateOf(known, k.state.UID, joined); used != "" {
		return health.DuplicateEvidence(used, k.state.UID)
	}
	return found
}

// listen notes whether the nodes of a member that is ready are silent.
func (k *keeper) listen() {
	switch {
	case !k.state.Ready() || !k.silent(k.member):
		k.state.Heartbeats = nil
	case k.state.Heartbeats == nil:
		now := metav1.Now()
		k.state.Heartbeats = &v1beta1.ClusterCondition{
			Type: v1beta1.ClusterNodeHeartbeatsStale, Status: corev1.ConditionTrue, Reason: v1beta1.ReasonLeasesNotRenewed,
			Message: "its nodes have not been heard of", LastTransitionTime: now, LastProbeTime: now,
		}
	}
}

func (k *keeper) rest(ctx context.Context, begin time.Time, next time.Duration) {
	timer := time.NewTimer(time.Until(begin.Add(next)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-k.wake:
		_ = sleep(ctx, 100*time.Millisecond)
	}
}

func (k *keeper) connect(ctx context.Context) {
	if !k.state.Ready() {
		k.disconnect()
		return
	}
	if k.live != nil && k.engaged != k.uid {
		k.disconnect()
	}
	if k.live != nil || k.state.Failures > 0 {
		return
	}
	k.engaged = k.uid
	k.mu.Lock()
	k.live, k.leave = context.WithCancel(ctx)
	live, followers := k.live, slices.Clone(k.followers)
	k.mu.Unlock()
	for _, f := range followers {
		f.take(live, k.member)
	}
}

func (k *keeper) disconnect() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.live != nil {
		k.leave()
		k.live = nil
		k.member.Wire.disconnect(k.process)
	}
}

// report writes what changed of the status: conditions, topology and room, as applications of one field manager.
func (k *keeper) report(ctx context.Context, known *v1beta1.Cluster) {
	var inventory *health.Inventory // it is read of a member that is connected
	if k.state.Ready() {
		inventory = &health.Inventory{Region: k.member.Region, Version: "v1.36.3"}
	}
	if inventory != nil && k.member.Zone != "" {
		inventory.Zones = []string{k.member.Zone}
	}
	status, changed := health.Report(known.Status, known.Spec.Topology, k.state, inventory)
	if changed {
		err := k.apply(ctx, "clusterregistry", known, map[string]any{
			"conditions": status.Conditions, "zones": status.Zones, "region": status.Region, "kubernetesVersion": status.KubernetesVersion, "uid": status.UID,
		}) // what fails is written after the next look
		if apierrors.IsConflict(err) {
			k.lookNow(k.member.Name)
		}
		if was := known.Status.UID; err == nil && was != "" && was != status.UID {
			k.events.Event(known, corev1.EventTypeWarning, v1beta1.EventClusterReplaced, "it is another cluster than before, or was installed again")
		}
	}
	now := k.room(k.member)
	if before := known.Status.Capacity; now != nil && k.state.Failures == 0 && (before == nil || !room.SameCapacity(before, now) && time.Since(before.ObservedAt.Time) >= roomEvery) {
		_ = k.apply(ctx, "federation-capacity", nil, map[string]any{"capacity": now})
	}
}

// roomEvery is how often the room of a member is written at most.
const roomEvery = 5 * time.Second

// apply applies a part of the Cluster's status: to the version that it was decided from alone, if that is given.
func (k *keeper) apply(ctx context.Context, by string, from *v1beta1.Cluster, status map[string]any) error {
	metadata := map[string]any{"name": k.member.Name}
	if from != nil {
		metadata["uid"], metadata["resourceVersion"] = from.UID, from.ResourceVersion
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": "Cluster", "metadata": metadata, "status": status,
	})
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(body); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second) // as clusterregistry does
	defer cancel()
	_, err = k.client.Resource(v1beta1.ClustersResource).ApplyStatus(ctx, k.member.Name, u, metav1.ApplyOptions{FieldManager: by, Force: true})
	return err
}
