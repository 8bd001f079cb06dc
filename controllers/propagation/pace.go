package propagation

import (
	"hash/fnv"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/controllers/propagation/plan"
)

// waits has the copies that wait for other copies: by the law, or for their turn in a rollout.
type waits struct {
	locks [64]sync.Mutex // by object: two members must not both count on the same ready replicas

	waiting   sync.Mutex
	forOthers map[key]map[string]bool
}

func (w *waits) lock(k key) *sync.Mutex {
	h := fnv.New32a()
	_, _ = h.Write([]byte(k.Namespace + "/" + k.Name))
	return &w.locks[h.Sum32()%uint32(len(w.locks))]
}

// wait notes whether a copy waits. Note it before looking at the others, so that no change of theirs is missed.
func (w *waits) wait(k key, cluster string, waits bool) {
	w.waiting.Lock()
	defer w.waiting.Unlock()
	switch {
	case waits && w.forOthers == nil:
		w.forOthers = map[key]map[string]bool{k: {cluster: true}}
	case waits && w.forOthers[k] == nil:
		w.forOthers[k] = map[string]bool{cluster: true}
	case waits:
		w.forOthers[k][cluster] = true
	default:
		delete(w.forOthers[k], cluster)
		if len(w.forOthers[k]) == 0 {
			delete(w.forOthers, k)
		}
	}
}

// others returns the clusters whose copies of an object wait.
func (w *waits) others(k key) (clusters []string) {
	w.waiting.Lock()
	defer w.waiting.Unlock()
	for cluster := range w.forOthers[k] {
		clusters = append(clusters, cluster)
	}
	return clusters
}

// objects returns the objects of which any copy waits.
func (w *waits) objects() (keys []key) {
	w.waiting.Lock()
	defer w.waiting.Unlock()
	for k := range w.forOthers {
		keys = append(keys, k)
	}
	return keys
}

// wakeWaiting has those copies of an object looked at that wait for others.
func (c *Controller) wakeWaiting(k key) {
	for _, cluster := range c.others(k) {
		if m := c.member(cluster); m != nil {
			m.queue.Add(k)
		}
	}
}

// wakeAllWaiting looks at all that waits: a member came or went.
func (c *Controller) wakeAllWaiting() {
	for _, k := range c.objects() {
		c.wakeWaiting(k)
	}
}

// allowed is what a member is to have of an object now, as far as others let it: what is wanted in the end, or
// what the law and the rollout leave it for the time being; then held says why.
func (c *Controller) allowed(m *member, s plan.Source, t plan.Target, k key) (want plan.Desired, held string) {
	goal, shrinks := s.Shrinks(t)
	policy := s.Rollout()
	if !shrinks && policy == nil {
		m.reserve(k, nil)
		c.wait(k, m.Name, false)
		return plan.Desire(s, t), t.Needed
	}
	mutex := c.lock(k)
	mutex.Lock()
	defer mutex.Unlock()
	c.wait(k, m.Name, true)
	m.reserve(k, nil)
	if shrinks {
		t.Number, held = c.pace(m, s, t, paced{k, goal})
	}
	want = plan.Desire(s, t)
	if policy != nil && t.Have != nil && want.Object != nil && !plan.Updated(want, t.Have) {
		if may, why := plan.MayUpdate(c.turns(s, want, k), m.Name, policy); may {
			m.rolls(k, want)
		} else {
			t.Template, _, _ = unstructured.NestedMap(t.Have.Object, "spec", "template")
			want, held = plan.Desire(s, t), join(why, held)
		}
	}
	if held == "" {
		c.wait(k, m.Name, false)
	}
	return want, held
}

// paced is a copy that is to shrink to goal.
type paced struct {
	key
	goal int64
}

// pace returns what the law still leaves to a copy that is to shrink; nil where it may shrink at once.
func (c *Controller) pace(m *member, s plan.Source, t plan.Target, p paced) (*int64, string) {
	shares, own := c.shares(m, s, t, p.key)
	shares[own].Target = p.goal
	leaving := plan.Leaving(shares)
	for i := range shares {
		shares[i].Target = max(shares[i].Target, s.Floor(shares[i].Cluster, leaving, shares[i].Most))
	}
	asked := s.Asked()
	if c.autoscalersKnown(s) {
		asked = s.AskedFor(shares)
	}
	now := plan.Pace(shares, own, asked)
	if plan.ScaledByMember(t.Have) && now > p.goal {
		now = shares[own].Applied // by steps would be a fight with its autoscaler: all at once, when it may
	}
	m.reserve(p.key, &now)
	if now == p.goal {
		return nil, ""
	}
	return &now, plan.HeldBack(shares[own], now, plan.Ready(shares), asked)
}

// shares returns what each engaged member holds of an object, and which of them is m's.
func (c *Controller) shares(m *member, s plan.Source, t plan.Target, k key) (shares []plan.Share, own int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, other := range c.members {
		if other == m {
			own = len(shares)
		}
		theirs, _ := c.target(other)
		theirs.Scaled = c.scaled(other, s, theirs)
		share := other.share(s, theirs, k)
		share.Unscaled = theirs.Scaled && !scalerComes(other, s, theirs)
		shares = append(shares, share)
	}
	if c.members[m.Name] != m { // it has just been lost
		own, shares = len(shares), append(shares, m.share(s, t, k))
	}
	return shares, own
}

// turns returns how each engaged member stands in the rollout of an object; want is what m would get.
func (c *Controller) turns(s plan.Source, want plan.Desired, k key) (turns []plan.Turn) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, m := range c.members {
		t, known := c.target(m)
		if !known || !m.ready(k.kind) {
			continue
		}
		t.Have, _ = m.observe(k)
		t.Scaled = c.scaled(m, s, t)
		theirs := want
		if presence, _, _ := s.Wanted(t); presence != plan.Present {
			continue
		}
		if len(s.Policy.Spec.Overrides) > 0 { // else all get the same template
			theirs = plan.Desire(s, t)
		}
		turn := plan.TurnOf(k.kind, theirs, t)
		if m.rollsTo(k, theirs) {
			turn.Updated, turn.Healthy = true, false
		}
		turns = append(turns, turn)
	}
	return turns
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
