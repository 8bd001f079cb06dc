package fleettest

import (
	"fmt"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
)

// Taints of a drain.
const (
	drainTaint  = v1beta1.TaintDrain
	cordonTaint = v1beta1.TaintUnschedulable
)

// patience is how long somebody at a terminal watches a cluster get empty, or full again.
const patience = 2 * time.Minute

// drainCluster carries out drain CLUSTER: what kubectl federation drain asks for; then it watches for a while.
func drainCluster(p *player, args []string) error {
	return askForDrain(p, "drain CLUSTER", args, map[string]any{}, func(c *v1beta1.Cluster) bool { return c.OutOfService() == v1beta1.Drained })
}

// undrainCluster carries out undrain CLUSTER: what kubectl federation undrain asks for; then it watches for a while.
func undrainCluster(p *player, args []string) error {
	return askForDrain(p, "undrain CLUSTER", args, nil, func(c *v1beta1.Cluster) bool { return c.Annotations[v1beta1.DrainAnnotation] == "" })
}

func askForDrain(p *player, usage string, args []string, is any, until func(*v1beta1.Cluster) bool) error {
	if err := need(args, 1, usage); err != nil {
		return err
	}
	m, err := p.find(args[0])
	if err != nil {
		return err
	}
	if err := p.merge("cluster/"+m.Name, map[string]any{"spec": map[string]any{"drain": is}}); err != nil {
		return err
	}
	p.await(func() bool {
		c := p.clusters.named(m.Name)
		return c == nil || until(c)
	})
	return nil
}

const drainsAreUndone = "a drain that is withdrawn is undone"

// awaitEndOfDrains lets time pass until the clusters that are not to be drained are as before.
func awaitEndOfDrains(p *player) error {
	var left string
	undone := func() bool {
		left = ""
		for name := range p.members {
			c := p.clusters.named(name)
			if c == nil || c.Spec.Drain != nil {
				continue
			}
			if d, err := v1beta1.ParseDrain(c.Annotations[v1beta1.DrainAnnotation]); err != nil || d != nil && d.Step != "" || c.Status.Drain != nil || d == nil && c.OutOfService() != "" {
				left = fmt.Sprintf("cluster %s: weight %d, taints %v, %v, status %+v", name, c.DNSWeight(), c.Spec.Taints, c.Annotations, c.Status.Drain)
			}
		}
		return left == ""
	}
	if !p.await(undone) {
		return against(drainsAreUndone, "%s after all is well: %s", patience, left)
	}
	p.tally.check(drainsAreUndone)
	return nil
}

// await lets time pass until something is so, and returns false when patience ends first.
func (p *player) await(so func() bool) bool {
	for end := time.Now().Add(patience); !so(); p.Pass(time.Second) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
