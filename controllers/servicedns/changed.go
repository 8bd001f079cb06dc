package servicedns

import (
	"maps"
	"sync"
	"time"
)

// seen is what has changed since the last look.
type seen struct {
	// objects are Services and Ingresses, by plan.Object.Key; policies by namespace/name.
	objects, policies, clusters, hosts map[string]bool
	// grants: a DNSNameGrant has changed.
	grants bool
	// targets are the load balancers that answer checks no more, or again, by plan.Target.Key.
	targets map[string]bool
	// since is when the first of it changed; zero when nothing did.
	since time.Time
}

// changed gathers changes for the one who looks at them: while he is busy, they go together.
type changed struct {
	mu   sync.Mutex
	seen seen
	// wake has an element when there is something to look at.
	wake chan struct{}
}

func newChanged() *changed {
	c := &changed{wake: make(chan struct{}, 1)}
	c.take()
	return c
}

func (c *changed) object(kind string) func(key string) {
	return func(key string) { c.note(func(s *seen) { s.objects[kind+" "+key] = true }) }
}
func (c *changed) policy(key string)   { c.note(func(s *seen) { s.policies[key] = true }) }
func (c *changed) grant(string)        { c.note(func(s *seen) { s.grants = true }) }
func (c *changed) cluster(name string) { c.note(func(s *seen) { s.clusters[name] = true }) }
func (c *changed) host(name string)    { c.note(func(s *seen) { s.hosts[name] = true }) }

func (c *changed) checks(keys map[string]bool) {
	c.note(func(s *seen) { maps.Copy(s.targets, keys) })
}

func (c *changed) note(add func(*seen)) {
	c.mu.Lock()
	add(&c.seen)
	if c.seen.since.IsZero() {
		c.seen.since = time.Now()
	}
	c.mu.Unlock()
	c.wakeUp()
}

func (c *changed) wakeUp() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// take returns what has changed, and begins anew.
func (c *changed) take() seen {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.seen
	c.seen = seen{objects: map[string]bool{}, policies: map[string]bool{}, clusters: map[string]bool{}, hosts: map[string]bool{}, targets: map[string]bool{}}
	return s
}
