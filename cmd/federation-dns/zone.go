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
	// federated is whether a federation has yet to be heard of, before there is a zone.
	federated bool
	// file has the records of the file, and names their names.
	file  []dnsprovider.RRSet
	names map[string]bool
}

// setFile makes sets the records of the file, in the place of those that it had.
func (z *zone) setFile(ctx context.Context, sets []dnsprovider.RRSet) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	if !z.federated || z.ready.Load() {
		if err := z.server.Apply(ctx, z.name, dnsprovider.Diff(z.file, sets)); err != nil {
			return err
		}
		z.ready.Store(true)
	}
	z.file, z.names = sets, make(map[string]bool, len(sets))
	for _, set := range sets {
		z.names[set.Name] = true
	}
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
	return nil
}
