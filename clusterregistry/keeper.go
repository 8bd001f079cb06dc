package clusterregistry

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/credential"
	"federation/clusterregistry/health"
	"federation/clusterregistry/limits"
	"federation/controllers/supervisor"
)

// keeper keeps the connection to one cluster. All fields but wake, barrier and those that are atomic belong to its goroutine.
type keeper struct {
	registry *Registry
	name     string
	stop     context.CancelFunc
	wake     supervisor.Wake

	cluster     clusterObject
	state       health.State
	link        *link
	fingerprint string
	secretRead  string // resource versions that the link was made from
	unconfirmed bool   // address or credential have changed, or the cluster has joined again, and no good check since is written
	joined      string // v1beta1.JoinAnnotation of the join that the link is of
	member      *Member
	inventory   atomic.Pointer[health.Inventory]
	penalty     penalty
	barrier     barrier // of a drill
	probed      atomic.Pointer[Probe]
	observed    observed
	heartbeats  heartbeats
	blackhole   blackhole
	behind      behindBarrier
}

// healthCheckGap is the least time between two checks, however often something wakes us.
const healthCheckGap = 100 * time.Millisecond

// startKeeper is called with the registry locked.
func (r *Registry) startKeeper(ctx context.Context, name string) *keeper {
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, klog.FromContext(ctx).WithValues("cluster", name)))
	k := &keeper{registry: r, name: name, stop: cancel, wake: supervisor.NewWake(), cluster: clusterObject{registry: r, name: name}}
	k.heartbeats.changed = k.checkNow
	k.barrier.set(r.isolation.ModeOf(name, time.Now()))
	r.keepersWG.Go(func() { wait.UntilWithContext(ctx, k.run, time.Second) }) // again, should it panic
	return k
}

// checkNow has the keeper check at once. It never waits.
func (k *keeper) checkNow() { k.wake.Signal() }

var errUnjoined = errors.New("the cluster has left the federation")

func (k *keeper) run(ctx context.Context) {
	defer func() {
		k.disconnect(errUnjoined)
		if hub := k.registry.options.Tunnel; hub != nil && k.cluster.known != nil {
			hub.Forget(k.cluster.known.UID)
		}
		forgetMetrics(k.name)
	}()
	for ctx.Err() == nil {
		begin := time.Now()
		if !k.refresh(ctx) {
			return
		}
		k.forwardBlackhole(ctx)
		evidence := k.checkIdentity(ctx, k.checkHealth(ctx))
		if ctx.Err() != nil {
			return
		}
		k.heartbeats.away = k.heartbeats.away || len(k.state.Conditions) > 0 && !k.state.Ready()
		verdict := health.Judge(k.state, evidence, k.registry.options.Policy, time.Now())
		k.state = verdict.State
		k.probed.Store(&Probe{At: time.Now(), Healthy: evidence.Answer == health.Healthy, LostSince: k.state.LostSince(), Unclear: evidence.Answer.Unclear()})
		k.observed.observe(k.cluster.known, k.state.Ready(), verdict.Transition)
		k.connect(ctx)
		k.heartbeats.adopt(k.cluster.known.Condition(v1beta1.ClusterNodeHeartbeatsStale), k.member, k.registry.options.Timeout)
		k.state.Heartbeats, k.state.Agent = k.heartbeats.condition(k.state.Ready()), k.agentCondition()
		k.report(ctx, verdict)
		k.checkBehind(ctx)
		k.waitForNextCheck(ctx, begin, verdict.Next)
	}
}

// waitForNextCheck waits until it is time to check again: next after begin, when woken, or when the agent of a lost cluster comes, but not within
// healthCheckGap of begin.
func (k *keeper) waitForNextCheck(ctx context.Context, begin time.Time, next time.Duration) {
	timer := time.NewTimer(time.Until(begin.Add(next)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return
	case <-timer.C:
	case <-k.wake:
	case <-k.agentComes():
	}
	if left := time.Until(begin.Add(healthCheckGap)); left > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(left):
		}
	}
}

// agentComes returns what is closed when the agent of a cluster that is lost connects; nil for others.
func (k *keeper) agentComes() <-chan struct{} {
	if k.state.Failures == 0 || !k.cluster.known.IsPull() || k.registry.options.Tunnel == nil {
		return nil
	}
	return k.registry.options.Tunnel.Came(k.cluster.known.UID)
}

// refresh brings the Cluster up to date, and returns false when it is gone.
func (k *keeper) refresh(ctx context.Context) bool {
	was := k.cluster.known
	if !k.cluster.refresh(ctx) {
		return false
	}
	is := k.cluster.known
	if was == nil { // the conditions and their dates outlive a restart of the federation
		k.state = health.Restore(is.Status.Conditions)
		k.heartbeats.restore(is.Status.Conditions, k.state.Heartbeats)
	}
	if hub := k.registry.options.Tunnel; hub != nil && was != nil && was != is && (was.UID != is.UID || !is.IsPull()) {
		hub.Forget(was.UID) // its agents have nothing to do here any more
	}
	return true
}

// checkHealth gathers the evidence of one health check. A cluster that cannot be configured is disconnected first, and so is one that
// misbehaved.
func (k *keeper) checkHealth(ctx context.Context) health.Evidence {
	if reason := k.penalty.reasonNow(time.Now()); reason != "" {
		k.dropLink(errors.New(reason))
		return health.Evidence{Answer: health.ExceedsLimits, Detail: reason}
	}
	if err := k.updateLink(); err != nil {
		k.dropLink(err)
		return health.Evidence{Answer: health.Misconfigured, Detail: err.Error()}
	}
	defer observeHealthCheck(k.name, time.Now())
	return k.link.checkHealth(ctx, k.registry.options.Timeout)
}

// updateLink makes a new link where address or credential changed, and hands it a changed token.
func (k *keeper) updateLink() error {
	if k.cluster.known.IsPull() {
		return k.updateLinkToAgent()
	}
	secret, err := k.cluster.secret()
	if err != nil {
		return err
	}
	read := fmt.Sprintf("%s %s %s", k.cluster.known.UID, k.cluster.known.ResourceVersion, secret.ResourceVersion)
	if k.link != nil && read == k.secretRead {
		return nil
	}
	config, token, err := credential.Config(k.cluster.known, secret, k.registry.local)
	if err != nil {
		return err
	}
	first := k.link == nil
	if err := k.linkBy(config, token); err != nil {
		return err
	}
	k.unconfirmed = k.unconfirmed || k.link.token.Load() != token
	k.link.token.Store(token)
	k.secretRead = read
	k.noteJoin(first, secret)
	k.link.credentialRead.Signal()
	return nil
}

// updateLinkToAgent is updateLink for a cluster whose agent connects to us.
func (k *keeper) updateLinkToAgent() error {
	hub := k.registry.options.Tunnel
	if hub == nil {
		return fmt.Errorf("spec.connection is %s, and this process of the federation takes no agents", v1beta1.ConnectionPull)
	}
	k.secretRead = ""
	first := k.link == nil
	err := k.linkBy(credential.ThroughAgent(k.cluster.known.UID, hub.Dial), "")
	k.noteJoin(first, nil)
	return err
}

// noteJoin has the first good check since a join be written. first: there was no link before. secret is nil where the Cluster has none. As long as it is of
// another join than the Cluster, not all that was written is known here.
func (k *keeper) noteJoin(first bool, secret *corev1.Secret) {
	join := k.cluster.known.Annotations[v1beta1.JoinAnnotation]
	if secret != nil && secret.Annotations[v1beta1.JoinAnnotation] != "" && secret.Annotations[v1beta1.JoinAnnotation] != join {
		k.unconfirmed = false
		return
	}
	again := !first && join != k.joined
	k.unconfirmed = k.unconfirmed || again
	k.joined = join
	if again && k.member != nil {
		select {
		case k.member.joined <- struct{}{}:
		default: // it knows
		}
	}
}

// linkBy makes a link, unless there is one that connects in the same way.
func (k *keeper) linkBy(config *rest.Config, token string) error {
	fingerprint := credential.Fingerprint(config)
	if k.link != nil && fingerprint == k.fingerprint {
		return nil
	}
	l, err := newLink(config, token, limits.New(k.registry.options.Limits, k.exceedsLimits), &k.barrier, k.registry.carrierTo(k.name), k.checkNow)
	if err != nil {
		return err
	}
	k.disconnect(errors.New("address or credential has changed"))
	k.unconfirmed = k.unconfirmed || k.fingerprint != "" // not at the start of this process, which changes nothing
	k.link, k.fingerprint = l, fingerprint
	return nil
}

// agentCondition says whether the agent of a cluster is connected to this process; nil where it has none.
func (k *keeper) agentCondition() *v1beta1.ClusterCondition {
	if !k.cluster.known.IsPull() || k.registry.options.Tunnel == nil {
		return nil
	}
	c := health.AgentCondition(k.registry.options.Tunnel.Agent(k.cluster.known.UID))
	return &c
}

// connect makes or ends the Member, so that there is one exactly while the cluster is ready.
func (k *keeper) connect(ctx context.Context) {
	if !k.state.Ready() {
		k.disconnect(fmt.Errorf("cluster %q: %w", k.name, ErrNotConnected))
		return
	}
	switch {
	case k.member != nil && k.member.ctx.Err() != nil: // somebody could not take it up
		k.disconnect(context.Cause(k.member.ctx))
	case k.member != nil && k.member.uid != k.link.identity():
		k.disconnect(fmt.Errorf("cluster %q is another one than before", k.name))
	}
	if k.member != nil || k.state.Failures > 0 {
		return // the last check must be good: on a restart Ready may be from before
	}
	m, err := k.engage(ctx)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Failed to connect")
		return
	}
	k.member = m
	klog.FromContext(ctx).V(1).Info("Connected")
	k.heartbeats.connected(m, k.registry.options.Timeout)
	k.keepInventory(m, k.link)
	go supervisor.Keep(m.ctx, "registry", (&tokenKeeper{k.registry, k.name, k.link, k.cluster.reference()}).run)
}

// engage makes a Member, presents it, and lets its informers run.
func (k *keeper) engage(ctx context.Context) (*Member, error) {
	m, err := newMember(ctx, k.name, k.registry.uid, k.link)
	if err != nil {
		return nil, err
	}
	m.lacks = k.cluster.tellLacking()
	k.heartbeats.connecting()
	m.silent = k.heartbeats.silent
	for _, f := range k.registry.announce(m) {
		if err := f.engage(m); err != nil {
			k.registry.forget(m)
			m.cancel(err)
			return nil, err
		}
	}
	m.start()
	return m, nil
}

// dropLink ends the Member, and has the next check begin with a new link.
func (k *keeper) dropLink(cause error) {
	k.disconnect(cause)
	if k.link != nil {
		k.link.close()
	}
	k.link, k.fingerprint, k.secretRead = nil, "", ""
}

// disconnect ends the Member, if there is one, and every connection.
func (k *keeper) disconnect(cause error) {
	if k.member != nil {
		k.registry.forget(k.member)
		k.member.cancel(cause)
		k.member = nil
		k.link.close()
	}
}
