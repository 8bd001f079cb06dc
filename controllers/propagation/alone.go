package propagation

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/controllers/propagation/plan"
)

// aloneAfter is for how long this process may not reach a cluster that the federation reaches, until what it knows of it counts as old
// (ADR 87): longer than it takes to agree that the cluster is lost, or to take it up again.
const aloneAfter = 20 * time.Second

// miss notes that a cluster could be engaged from now on, and has what has addresses there reported again if it is not.
func (c *Controller) miss(cluster string) {
	if c.member(cluster) != nil {
		return
	}
	c.mu.Lock()
	c.missed[cluster] = time.Now()
	c.mu.Unlock()
	for i := range c.Kinds {
		if k := &c.Kinds[i]; k.Addresses {
			for _, this := range c.federatedOf(k) {
				c.reports.AddAfter(this, aloneAfter)
			}
		}
	}
}

// alone reports whether this process has not reached a cluster for a while that the federation reaches. An object whose addresses there
// count is reported again when that will be.
func (c *Controller) alone(k key, cluster *unstructured.Unstructured, now time.Time) bool {
	if !k.kind.Addresses || !plan.IsReached(cluster) {
		return false
	}
	c.mu.RLock()
	since, known := c.missed[cluster.GetName()]
	c.mu.RUnlock()
	if !known {
		since = c.started
	}
	left := since.Add(aloneAfter).Sub(now)
	if left > 0 {
		c.reports.AddAfter(k, left)
	}
	return left <= 0
}
