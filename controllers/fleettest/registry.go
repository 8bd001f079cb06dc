package fleettest

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry"
	"federation/clusterregistry/health"
)

// registry stands for clusterregistry: it looks at each member once a second, judges with health, writes the status
// of the Cluster, and has members engaged exactly while they are ready. Only the wire is another.
type registry struct {
	client  dynamic.Interface
	members func() map[string]*Member
	// engage takes a member up until ctx is done.
	engage func(ctx context.Context, m *Member) error

	mu      sync.Mutex
	keepers map[string]*keeper
	running sync.WaitGroup
}

// keeper looks at one member.
type keeper struct {
	*registry
	member *Member
	stop   context.CancelFunc
	wake   chan struct{}
	state  health.State
	leave  context.CancelFunc // of the member that is engaged; nil while none is
	room   time.Time          // when the room was written last
}

// run starts and stops keepers as Clusters come and go, until ctx is done.
func (r *registry) run(ctx context.Context) {
	defer r.running.Wait()
	for ctx.Err() == nil {
		for name, m := range r.members() {
			if _, err := r.cluster(ctx, name); err == nil {
				r.keep(ctx, name, m)
			}
		}
		_ = sleep(ctx, 100*time.Millisecond)
	}
}

func (r *registry) keep(ctx context.Context, name string, m *Member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keepers[name] != nil {
		return
	}
	k := &keeper{registry: r, member: m, wake: make(chan struct{}, 1)}
	ctx, k.stop = context.WithCancel(ctx)
	r.keepers[name] = k
	r.running.Go(func() { k.run(ctx) })
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

func (r *registry) cluster(ctx context.Context, name string) (*v1beta1.Cluster, error) {
	u, err := r.client.Resource(v1beta1.ClustersResource).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return clusterOf(u)
}

func clusterOf(u *unstructured.Unstructured) (*v1beta1.Cluster, error) {
	c := &v1beta1.Cluster{}
	return c, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, c)
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
		known, err := k.cluster(ctx, k.member.Name)
		if err != nil {
			return
		}
		if first {
			k.state.Conditions, first = ours(known.Status.Conditions), false
		}
		evidence := k.member.Wire.look(ctx, clusterregistry.DefaultTimeout)
		if ctx.Err() != nil {
			return
		}
		verdict := health.Judge(k.state, evidence, health.DefaultPolicy(), time.Now())
		k.state = verdict.State
		k.connect(ctx)
		k.report(ctx, known)
		k.rest(ctx, begin, verdict.Next)
	}
}

// ours are the conditions that the registry writes.
func ours(all []v1beta1.ClusterCondition) (out []v1beta1.ClusterCondition) {
	for _, c := range all {
		if c.Type == v1beta1.ClusterReady || c.Type == v1beta1.ClusterOffline {
			out = append(out, c)
		}
	}
	return out
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
	if k.leave != nil || k.state.Failures > 0 {
		return
	}
	ctx, leave := context.WithCancel(ctx)
	if err := k.engage(ctx, k.member); err != nil {
		leave()
		return
	}
	k.leave = leave
}

func (k *keeper) disconnect() {
	if k.leave != nil {
		k.leave()
		k.leave = nil
		k.member.Wire.client.Break()
	}
}

// report writes what changed of the status: conditions, topology and room, as applications of one field manager.
func (k *keeper) report(ctx context.Context, known *v1beta1.Cluster) {
	inventory := &health.Inventory{Region: k.member.Region, Version: "v1.36.3"}
	if k.member.Zone != "" {
		inventory.Zones = []string{k.member.Zone}
	}
	before := known.Status
	before.Conditions = ours(before.Conditions)
	status, changed := health.Report(before, k.state, inventory)
	if changed {
		_ = k.apply(ctx, "clusterregistry", map[string]any{
			"conditions": status.Conditions, "zones": status.Zones, "region": status.Region, "kubernetesVersion": status.KubernetesVersion,
		}) // what fails is written after the next look
	}
}

// apply applies a part of the Cluster's status.
func (k *keeper) apply(ctx context.Context, by string, status map[string]any) error {
	body, err := json.Marshal(map[string]any{
		"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": "Cluster", "metadata": map[string]any{"name": k.member.Name}, "status": status,
	})
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(body); err != nil {
		return err
	}
	_, err = k.client.Resource(v1beta1.ClustersResource).ApplyStatus(ctx, k.member.Name, u, metav1.ApplyOptions{FieldManager: by, Force: true})
	return err
}
