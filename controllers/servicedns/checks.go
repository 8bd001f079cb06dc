package servicedns

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/servicedns/plan"
	"federation/controllers/supervisor"
)

// checks tracks the load balancers to check, and the failing ones in the ConfigMap. The leader checks and writes; all
// processes and the tools read, so that they decide alike.
type checks struct {
	// kube is a client of the federation. Nil turns checks off.
	kube kubernetes.Interface
	// refuse returns an error for an address that must not be checked.
	refuse func(netip.Addr) error
	// changed is called with the keys of the targets that fail, or recover.
	changed func(keys map[string]bool)
	// due has an element when the wanted targets have changed.
	due supervisor.Wake
	// planned is closed when all objects have been planned and the ConfigMap has been read.
	planned chan struct{}
	settle  func()

	mu sync.Mutex
	// wanted counts the objects per target.
	wanted map[plan.Target]int
	// failing is replaced, never changed in place.
	failing map[string]plan.Failure
}

func newChecks(kube kubernetes.Interface, refuse func(netip.Addr) error, changed func(map[string]bool)) *checks {
	planned := make(chan struct{})
	return &checks{
		kube: kube, refuse: refuse, changed: changed, due: supervisor.NewWake(), wanted: map[plan.Target]int{},
		planned: planned, settle: sync.OnceFunc(func() { close(planned) }),
	}
}

// failingByKey returns the failing targets by key. The caller must not change the map.
func (c *checks) failingByKey() map[string]plan.Failure {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failing
}

// countUses adds n to the use counts of the targets.
func (c *checks) countUses(targets []plan.Target, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range targets {
		was := c.wanted[t]
		if c.wanted[t] += n; c.wanted[t] == 0 {
			delete(c.wanted, t)
		}
		if was == 0 || c.wanted[t] == 0 {
			c.due.Signal()
		}
	}
}

func (c *checks) targets() []plan.Target {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.wanted))
}

// waitUntilKnown waits until the wanted and the failing targets are known: a leader that began sooner would write that nothing
// fails. It returns false if ctx ends before.
func (c *checks) waitUntilKnown(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-c.planned:
		return true
	}
}

// watchConfigMap reads the ConfigMap until ctx ends. synced reports whether it has been read once.
func (c *checks) watchConfigMap(ctx context.Context, running *sync.WaitGroup) (synced cache.InformerSynced) {
	return followConfigMap(ctx, running, c.kube, v1beta1.DNSHealthChecksConfigMap, c.handleConfigMap)
}

// handleConfigMap takes in the ConfigMap.
func (c *checks) handleConfigMap(written *corev1.ConfigMap) {
	now, err := plan.ParseFailures(written.Data[v1beta1.DNSHealthChecksFailing])
	if err != nil {
		klog.ErrorS(err, "Cannot parse failing health checks, keeping the previous ones")
		return
	}
	c.mu.Lock()
	other := map[string]bool{}
	for key, f := range now {
		if c.failing[key] != f {
			other[key] = true
		}
	}
	for key := range c.failing {
		if _, still := now[key]; !still {
			other[key] = true
		}
	}
	c.failing = now
	c.mu.Unlock()
	c.due.Signal() // so that the leader notices what others wrote
	if len(other) > 0 {
		c.changed(other)
	}
}
