package clusterregistry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/credential"
	"federation/clusterregistry/health"
	"federation/clusterregistry/isolation"
	"federation/clusterregistry/limits"
	"federation/clusterregistry/tunnel"
	"federation/controllers/supervisor"
)

// UserAgent is what members see in their audit logs.
const UserAgent = "federation"

// ErrNotConnected says that there is no connection to a cluster now. Do not retry: an Engager hears
// of it when the cluster is back.
var ErrNotConnected = errors.New("not connected")

// Engager is told of each new connection to a member.
type Engager interface {
	// Engage is called before the informers of the member start: ask for informers and add handlers
	// here. ctx is done when the member is lost. It must not wait for the member. On an error
	// the member is dropped, and connected again after the next check.
	Engage(ctx context.Context, m *Member) error
}

// Options say what a Registry works on.
type Options struct {
	// Config reaches the federation's API.
	Config *rest.Config
	// Client reads and writes Clusters there. Nil: one is made of Config.
	Client dynamic.Interface
	// Recorder records events of Clusters.
	Recorder record.EventRecorder
	// FederationUID marks what this federation made in members. "": the UID of the federation's
	// namespace kube-system, which is waited for at the start.
	FederationUID string
	// Policy says how often to check and when to believe it. Fields that are zero take those of health.DefaultPolicy.
	Policy health.Policy
	// Timeout of one check. 0: DefaultTimeout.
	Timeout time.Duration
	// Limits bound what each member can make this process read and hold.
	Limits limits.Limits
	// TokenLifetime is what is asked for when a token is renewed. 0: credential.TokenLifetime.
	TokenLifetime time.Duration
	// Report reports whether to write what is seen to the Clusters, and to renew their tokens: of several
	// processes one does. Nil: always.
	Report func() bool
	// Tunnel has the connections of agents, by which clusters are reached whose connection is Pull. Nil: they are not reached.
	Tunnel *tunnel.Hub
	// Transport returns what carries requests to a member. Nil: HTTPS connections, which drills can isolate and whose certificates are verified.
	// Any other has to do that itself, as far as it is needed.
	Transport func(Target) http.RoundTripper
}

// Target is a member, as requests are carried to it.
type Target struct {
	Cluster string
	// PastIsolation: also while a drill isolates the member.
	PastIsolation bool
	// Heard is to be called when the member sends anything, for one that answers too late is slow, and one that sends nothing is unreachable.
	Heard func()
}

// DefaultTimeout of one check. With one second between checks and two bad ones to be believed, a
// cluster that hangs is marked after four seconds at most.
const DefaultTimeout = 1500 * time.Millisecond

func (o *Options) complete() error {
	if o.Config == nil {
		return errors.New("clusterregistry: Options.Config must be set")
	}
	if o.Recorder == nil {
		return errors.New("clusterregistry: Options.Recorder must be set")
	}
	d := health.DefaultPolicy()
	o.Policy.Period = cmp.Or(o.Policy.Period, d.Period)
	o.Policy.Retry = cmp.Or(o.Policy.Retry, d.Retry)
	o.Policy.Threshold = cmp.Or(o.Policy.Threshold, d.Threshold)
	o.Policy.Settle = cmp.Or(o.Policy.Settle, d.Settle)
	o.Policy.SlowThreshold = cmp.Or(o.Policy.SlowThreshold, d.SlowThreshold)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	if o.Policy.Period < 0 || o.Policy.Retry < 0 || o.Policy.Threshold < 0 || o.Policy.Settle < 0 || o.Policy.SlowThreshold < 0 || o.Timeout < 0 {
		return fmt.Errorf("clusterregistry: Options: no duration or threshold may be negative: %+v, timeout %v", o.Policy, o.Timeout)
	}
	return nil
}

// Registry knows the member clusters. Its methods may be called from any goroutine.
type Registry struct {
	options   Options
	uid       string
	local     []netip.Addr
	dynamic   dynamic.Interface
	core      kubernetes.Interface
	clusters  cache.SharedIndexInformer
	secrets   cache.SharedIndexInformer
	leases    cache.SharedIndexInformer // of drills that isolate clusters
	mu        sync.RWMutex              // guards what follows, never held over I/O
	engagers  []*follower
	members   map[string]*Member
	keepers   map[string]*keeper
	keepersWG sync.WaitGroup
	handover  time.Duration
	isolation isolation.Seen
}

// New returns a Registry of the Clusters that the federation's API has. It does no I/O yet.
func New(o Options) (*Registry, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	config := rest.CopyConfig(o.Config)
	config.QPS, config.UserAgent = -1, UserAgent // the federation's API orders its clients by priority and fairness
	dyn := o.Client
	if dyn == nil {
		made, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		dyn = made
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	local, err := credential.LocalAddresses()
	if err != nil {
		return nil, err
	}
	return newRegistry(o, dyn, core, local), nil
}

func newRegistry(o Options, dyn dynamic.Interface, core kubernetes.Interface, local []netip.Addr) *Registry {
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	return &Registry{
		options: o, uid: o.FederationUID, local: local, dynamic: dyn, core: core,
		clusters: dynamicinformer.NewFilteredDynamicInformer(dyn, v1beta1.ClustersResource, "", 0, cache.Indexers{byUID: uidOf}, nil).Informer(),
		secrets:  coreinformers.NewSecretInformer(core, v1beta1.FederationNamespace, 0, byNamespace),
		leases:   drillLease(core),
		members:  map[string]*Member{}, keepers: map[string]*keeper{}, handover: handover,
	}
}

// carrierTo returns what makes the transports to a cluster; nil: connections of our own are.
func (r *Registry) carrierTo(cluster string) carrier {
	if r.options.Transport == nil {
		return nil
	}
	return func(pastIsolation bool, heard func()) http.RoundTripper {
		return r.options.Transport(Target{Cluster: cluster, PastIsolation: pastIsolation, Heard: heard})
	}
}

// Member returns the live connection to a cluster, or an error that is ErrNotConnected.
func (r *Registry) Member(name string) (*Member, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if m := r.members[name]; m != nil {
		return m, nil
	}
	return nil, fmt.Errorf("cluster %q: %w", name, ErrNotConnected)
}

// Members returns all live connections, sorted by name.
func (r *Registry) Members() []*Member {
	r.mu.RLock()
	defer r.mu.RUnlock()
	out := make([]*Member, 0, len(r.members))
	for _, m := range r.members {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b *Member) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Probe is what the latest probe of a cluster found.
type Probe struct {
	At      time.Time
	Healthy bool
	// LostSince is since when the cluster is judged not ready, whether that could be written or not; zero while it is ready.
	LostSince time.Time
	// Unclear: something answered that says nothing about what runs there, or nobody asked.
	Unclear bool
}

// Probes returns the latest probe of each cluster, by name, whether it could be written or not.
func (r *Registry) Probes() map[string]Probe {
	r.mu.RLock()
	defer r.mu.RUnlock()
	probes := make(map[string]Probe, len(r.keepers))
	for name, k := range r.keepers {
		if p := k.probed.Load(); p != nil {
			probes[name] = *p
		}
	}
	return probes
}

// Run keeps the connections until ctx is done. It returns nil then, when all have ended.
func (r *Registry) Run(ctx context.Context) error {
	registerMetrics()
	if err := r.learnUID(ctx); err != nil {
		return nil // ctx is done
	}
	go r.clusters.RunWithContext(ctx)
	go r.secrets.RunWithContext(ctx)
	go r.leases.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), r.clusters.HasSynced, r.secrets.HasSynced, r.leases.HasSynced) {
		return nil
	}
	defer r.keepersWG.Wait()
	r.seeLease()
	changed := supervisor.NewWake()
	if _, err := r.leases.AddEventHandler(onChange(func(string) { changed.Signal() })); err != nil {
		return err
	}
	r.keepersWG.Go(supervisor.Kept(ctx, "registry", func(ctx context.Context) { r.isolate(ctx, changed) }))
	if _, err := r.secrets.AddEventHandler(onChange(func(string) { r.wakeAll() })); err != nil {
		return err
	}
	if _, err := r.clusters.AddEventHandler(onChange(func(name string) { r.syncKeeper(ctx, name) })); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// learnUID waits for the namespace whose UID names this federation.
func (r *Registry) learnUID(ctx context.Context) error {
	if r.uid != "" {
		return nil
	}
	return wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		ns, err := r.core.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Waiting for the federation's namespace kube-system", "err", err)
			return false, nil
		}
		r.uid = string(ns.UID)
		return true, nil
	})
}

func onChange(do func(key string)) cache.ResourceEventHandler {
	handle := func(obj any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
			do(key)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: handle, UpdateFunc: func(_, obj any) { handle(obj) }, DeleteFunc: handle}
}

// syncKeeper starts, wakes or stops the keeper of a cluster.
func (r *Registry) syncKeeper(ctx context.Context, name string) {
	_, exists, _ := r.clusters.GetIndexer().GetByKey(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.keepers[name]
	switch {
	case exists && k == nil && ctx.Err() == nil:
		r.keepers[name] = r.startKeeper(ctx, name)
	case exists && k != nil:
		k.checkNow()
	case !exists && k != nil:
		k.stop()
		delete(r.keepers, name)
	}
}

// wakeAll is for changes of Secrets: they are few, and a check is cheap.
func (r *Registry) wakeAll() {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, k := range r.keepers {
		k.checkNow()
	}
}

// forget forgets m, unless another connection to the cluster has taken its place.
func (r *Registry) forget(m *Member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.members[m.Name] == m {
		delete(r.members, m.Name)
	}
}
