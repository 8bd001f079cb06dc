package servicedns

import (
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"federation/controllers/servicedns/plan"
	"federation/controllers/supervisor"
)

// seen is what has changed since the last pass.
type seen struct {
	// objects are Services and Ingresses, by plan.Object.Key; policies by namespace/name.
	objects, policies, clusters, hosts map[string]bool
	// grants means that a DNSNameGrant has changed.
	grants bool
	// balancers are the federation's own load balancers, if these have changed.
	balancers *[]plan.LoadBalancer
	// targets are the load balancers whose health check has begun or ceased to fail, by plan.Target.Key.
	targets map[string]bool
	// since is when the first change came; zero if there is none.
	since time.Time
}

// changes collects changes for one consumer. Changes that come while it is busy are batched.
type changes struct {
	mu   sync.Mutex
	seen seen
	// wake has an element while there are changes.
	wake supervisor.Wake
}

func newChanged() *changes {
	c := &changes{wake: supervisor.NewWake()}
	c.drain()
	return c
}

func (c *changes) objectHandler(kind string) func(key string) {
	return func(key string) { c.update(func(s *seen) { s.objects[kind+" "+key] = true }) }
}
func (c *changes) addPolicy(key string)   { c.update(func(s *seen) { s.policies[key] = true }) }
func (c *changes) addGrant(string)        { c.update(func(s *seen) { s.grants = true }) }
func (c *changes) addCluster(name string) { c.update(func(s *seen) { s.clusters[name] = true }) }
func (c *changes) addHost(name string)    { c.update(func(s *seen) { s.hosts[name] = true }) }

// setBalancers takes in the ConfigMap of the federation's own load balancers.
func (c *changes) setBalancers(written *corev1.ConfigMap) {
	all := plan.ParseLoadBalancers(written.Data)
	c.update(func(s *seen) { s.balancers = &all })
}

func (c *changes) addChecked(keys map[string]bool) {
	c.update(func(s *seen) { maps.Copy(s.targets, keys) })
}

func (c *changes) update(add func(*seen)) {
	c.mu.Lock()
	add(&c.seen)
	if c.seen.since.IsZero() {
		c.seen.since = time.Now()
	}
	c.mu.Unlock()
	c.wake.Signal()
}

// again adds changes that were drained before.
func (c *changes) again(before seen) {
	c.update(func(s *seen) {
		for to, from := range map[*map[string]bool]map[string]bool{&s.objects: before.objects, &s.policies: before.policies, &s.clusters: before.clusters, &s.hosts: before.hosts, &s.targets: before.targets} {
			maps.Copy(*to, from)
		}
		s.grants = s.grants || before.grants
		if s.balancers == nil {
			s.balancers = before.balancers
		}
		s.since = before.since
	})
}

// drain returns the changes and starts over.
func (c *changes) drain() seen {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.seen
	c.seen = seen{objects: map[string]bool{}, policies: map[string]bool{}, clusters: map[string]bool{}, hosts: map[string]bool{}, targets: map[string]bool{}}
	return s
}
