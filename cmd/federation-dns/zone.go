package main

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/klog/v2"

	"federation/dnsprovider"
	"federation/dnsprovider/authoritative"
)

// zone brings what a file and a federation say together. For the federation's controller it is the
// provider: the file's records are hidden from it, and what it would do at their names is left undone.
type zone struct {
	server *authoritative.Server
	name   string
	// ready is whether questions are answered: once all that shall be in the zone has been heard of.
	ready atomic.Bool

	mu sync.Mutex
	// federated is whether the federation has names in the zone too.
	federated bool
	// file has the records of the file until there is a zone, and names, where there is a federation, their names.
	file  []dnsprovider.RRSet
	names map[string]bool
}

// setFile makes sets the records of the file, in the place of those that it had. A name that the federation has, too, becomes the file's.
func (z *zone) setFile(ctx context.Context, sets []dnsprovider.RRSet) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	names := map[string]bool{}
	for _, set := range sets {
		if z.federated {
			names[set.Name] = true
		}
	}
	if z.federated && !z.ready.Load() {
		z.file, z.names = sets, names
		return nil
	}
	have, err := z.server.Records(ctx, z.name)
	if err != nil {
		return err
	}
	have = slices.DeleteFunc(have, func(s dnsprovider.RRSet) bool { return z.federated && !z.names[s.Name] && !names[s.Name] })
	if err := z.server.Apply(ctx, z.name, dnsprovider.Diff(have, sets)); err != nil {
		return err
	}
	z.names = names
	z.ready.Store(true)
	return nil
}

// Chooses is the server's promise to give one variant of a set at a time. See dnsprovider.Chooser.
func (z *zone) Chooses() {}

// Records returns what the federation has in the zone.
func (z *zone) Records(ctx context.Context, name string) ([]dnsprovider.RRSet, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	all, err := z.server.Records(ctx, name)
	return slices.DeleteFunc(all, func(s dnsprovider.RRSet) bool { return z.names[s.Name] }), err
}

// Apply makes the federation's changes; the first call makes the zone, with the file's records.
func (z *zone) Apply(ctx context.Context, name string, changes dnsprovider.ChangeSet) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	changes = slices.DeleteFunc(slices.Clone(changes), func(s dnsprovider.Step) bool {
		if z.names[s.Name] {
			klog.InfoS("The zone file has this name: what the federation says of it is not served", "name", s.Name)
		}
		return z.names[s.Name]
	})
	if !z.ready.Load() {
		changes = append(changes, dnsprovider.Diff(nil, z.file)...)
		slices.SortFunc(changes, func(a, b dnsprovider.Step) int { return cmp.Compare(a.Name, b.Name) })
	}
	if err := z.server.Apply(ctx, name, changes); err != nil {
		return err
	}
	z.ready.Store(true)
	z.file = nil
	return nil
}
