package fleettest

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/fleettest/memapi"
)

// apiOf is the federation's API or that of a member, which is returned, too.
func (p *player) apiOf(name string) (*memapi.API, *Member, error) {
	if name == "fed" {
		return p.Federation, nil, nil
	}
	m, err := p.find(name)
	if err != nil {
		return nil, nil, err
	}
	return m.API, m, nil
}

// takeSnapshot carries out snapshot fed|CLUSTER: a backup of all that its API holds.
func takeSnapshot(p *player, args []string) error {
	if err := need(args, 1, "snapshot fed|CLUSTER"); err != nil {
		return err
	}
	api, _, err := p.apiOf(args[0])
	if err != nil {
		return err
	}
	if p.backups == nil {
		p.backups = map[string]memapi.Snapshot{}
	}
	p.backups[args[0]] = api.Snapshot()
	return nil
}

// restoreSnapshot carries out restore fed|CLUSTER: the backup is restored, under whatever runs.
func restoreSnapshot(p *player, args []string) error {
	if err := need(args, 1, "restore fed|CLUSTER"); err != nil {
		return err
	}
	to, ok := p.backups[args[0]]
	if !ok {
		return fmt.Errorf("there is no snapshot of %q", args[0])
	}
	api, m, err := p.apiOf(args[0])
	if err == nil {
		putBack(p, api, m, to)
	}
	return err
}

// rebuildCluster carries out rebuild CLUSTER: it is installed again under its name: with nothing in it, and another identity.
func rebuildCluster(p *player, args []string) error {
	if err := need(args, 1, "rebuild CLUSTER"); err != nil {
		return err
	}
	m, err := p.find(args[0])
	if err != nil {
		return err
	}
	putBack(p, m.API, m, memapi.Snapshot{})
	bootstrap(m.API)
	m.accept(p.uid)
	return nil
}

// putBack restores an API. What pods that costs is not the federation's doing.
func putBack(p *player, api *memapi.API, m *Member, to memapi.Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	api.Restore(to)
	for k := range p.laws.replicas.ready {
		p.laws.taken[k] = time.Now()
	}
	if m != nil {
		m.seen, m.replaced = 0, time.Now()
		p.laws.foreign.lost(m.Name, func(at objectIn) *unstructured.Unstructured { return objectInMember(p.Fleet, at) })
		return
	}
	p.disturbed = time.Now()
	clear(p.gate.policies)
	for _, u := range p.Federation.List(v1beta1.PoliciesResource, nil) {
		p.gate.remember(u)
	}
	p.laws.recall(p.Fleet)
}

// recall has the laws know what the federation knows again, and nothing of what it has forgotten. It is called with the fleet locked.
func (l *laws) recall(f *Fleet) {
	f.laws.adoptions.note(f)
	clear(l.moves.placed)
	clear(l.moves.phases)
	clear(l.unknown.deletes) // each restore is a mistake of its own
	for name := range f.members {
		if c := f.clusters.named(name); c != nil {
			l.moves.phases[name] = c.Phase()
		}
	}
	maps.DeleteFunc(l.foreign.orphans, func(at objectIn, _ orphan) bool {
		return f.isCopy(objectInMember(f, at)) // it has yet to be released, and that it is to be may be forgotten
	})
}

// rejoinCluster carries out rejoin OLD NEW: the cluster leaves, and joins again under another name.
func rejoinCluster(p *player, args []string) error {
	if err := need(args, 2, "rejoin OLD NEW"); err != nil {
		return err
	}
	m, err := p.find(args[0])
	if err != nil {
		return err
	}
	if err := p.Unjoin(m.Name); err != nil {
		return err
	}
	p.Pass(5 * time.Second) // everybody has let go of it
	p.mu.Lock()
	p.setMember(m.Name, nil)
	m.Name, m.Wire.name = args[1], args[1]
	p.setMember(m.Name, m)
	p.mu.Unlock()
	return p.Join(m.Place)
}

// joinAlias carries out alias NEW OLD: a second Cluster joins that is the same cluster, at another address.
func joinAlias(p *player, args []string) error {
	if err := need(args, 2, "alias NEW OLD"); err != nil {
		return err
	}
	m, err := p.find(args[1])
	if err != nil {
		return err
	}
	if before := p.Member(args[0]); before != nil {
		return p.Join(before.Place)
	}
	p.mu.Lock()
	other := &Member{
		Place: m.Place, API: m.API, Wire: newWire(args[0], m.API, &p.panics, p.wrote), alias: true, index: m.index, kubelet: m.kubelet,
		pods:          podRunner{sets: m.pods.sets, rounds: m.pods.rounds, dropped: m.pods.dropped},
		loadBalancers: loadBalancers{cluster: m.index, addresses: m.loadBalancers.addresses}, autoscaling: m.autoscaling,
	}
	other.Name, other.Labels = args[0], maps.Clone(m.Labels)
	p.setMember(args[0], other)
	p.mu.Unlock()
	return p.Join(other.Place)
}

// approveDeletions carries out approve CLUSTER: as kubectl federation approve-deletions.
func approveDeletions(p *player, args []string) error {
	if err := need(args, 1, "approve CLUSTER"); err != nil {
		return err
	}
	c := p.clusters.named(args[0])
	if c == nil || len(c.Status.DeletionsPendingApproval) == 0 {
		return nil // nothing is held
	}
	var sets []string
	for _, h := range c.Status.DeletionsPendingApproval {
		sets = append(sets, h.Set)
	}
	p.mu.Lock()
	p.laws.unknown.approved[args[0]] = time.Now()
	p.mu.Unlock()
	return p.merge("cluster/"+args[0], map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1beta1.ApproveDeletionsAnnotation: strings.Join(sets, ",")}}})
}
