package fleettest

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// The taints of kubectl federation drain, and how long it waits for resolvers to forget a cluster's addresses.
const (
	drainTaint  = "federation.kubernetes.io/drain"
	cordonTaint = "federation.kubernetes.io/unschedulable"
	drainTTL    = 17 * time.Second
)

// patience is how long somebody at a terminal waits for a cluster to be empty, or to be full again.
const patience = 2 * time.Minute

// drain CLUSTER: the steps of kubectl federation drain, as ADR 13 has them. If the cluster is not empty after a while, it is
// interrupted there.
func (p *player) drain(args []string) error {
	if err := need(args, 1, "drain CLUSTER"); err != nil {
		return err
	}
	m, err := p.find(args[0])
	if err != nil {
		return err
	}
	mark := (&v1beta1.Drain{Since: metav1.Now()}).String()
	if err := p.merge("cluster/"+m.Name, map[string]any{"spec": map[string]any{"dnsWeight": 0}, "metadata": map[string]any{"annotations": map[string]any{v1beta1.DrainAnnotation: mark}}}); err != nil {
		return err
	}
	p.Pass(drainTTL)
	if err := p.taint([]string{m.Name, drainTaint + ":NoExecute"}); err != nil || !p.await(func() bool { return p.empty(m) }) {
		return err
	}
	return p.taint([]string{m.Name, cordonTaint + ":NoSchedule"})
}

// undrain CLUSTER: the steps of kubectl federation undrain.
func (p *player) undrain(args []string) error {
	if err := need(args, 1, "undrain CLUSTER"); err != nil {
		return err
	}
	m, err := p.find(args[0])
	if err != nil {
		return err
	}
	if err := errors.Join(p.untaint([]string{m.Name, drainTaint}), p.untaint([]string{m.Name, cordonTaint})); err != nil {
		return err
	}
	p.await(func() bool { return p.full(m) })
	return p.merge("cluster/"+m.Name, map[string]any{"spec": map[string]any{"dnsWeight": nil}, "metadata": map[string]any{"annotations": map[string]any{v1beta1.DrainAnnotation: nil}}})
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

// empty reports whether no replica is placed in a member, or asked for there.
func (p *player) empty(m *Member) bool {
	return p.everywhere(m, func(placed, asked, _ int) bool { return placed == 0 && asked == 0 })
}

// full reports whether all that is placed in a member is ready.
func (p *player) full(m *Member) bool {
	return p.everywhere(m, func(placed, _, ready int) bool { return ready >= placed })
}

// everywhere reports whether something is so of the numbers of each divided object in a member.
func (p *player) everywhere(m *Member, so func(placed, asked, ready int) bool) bool {
	for _, k := range v1beta1.FederatedKinds {
		if k.Preferences == "" {
			continue
		}
		for _, u := range p.Federation.List(k.Resource, nil) {
			placed, asked := 0, 0
			if d := v1beta1.ParsePlacement(u.GetAnnotations()[v1beta1.PlacementAnnotation]); d != nil {
				placed = int(d.Clusters[m.Name])
			}
			if there := m.API.Get(k.Resource, u.GetNamespace(), u.GetName()); there != nil {
				asked = replicasOf(there)
			}
			p.mu.Lock()
			ready := m.Ready(workloadKey{k.Resource.Resource, u.GetNamespace(), u.GetName()}, time.Now())
			p.mu.Unlock()
			if !so(placed, asked, ready) {
				return false
			}
		}
	}
	return true
}
