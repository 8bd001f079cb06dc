package main

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/klog/v2"

	"federation/dnsprovider"
	"federation/dnsprovider/authoritative"
)

// zone merges a file and a federation. It is the provider of the federation's controller: the file's records are hidden
// from the controller, and the federation's records of their names are kept for when the file gives the names up.
type zone struct {
	server *authoritative.Server
	name   string
	// ready is whether questions are answered: once the complete content of the zone is known.
	ready atomic.Bool

	mu sync.Mutex
	// federated is whether the federation also has names in the zone.
	federated bool
	// file has the file's records until there is a zone; names has their names, if there is a federation.
	file  []dnsprovider.RRSet
	names map[string]bool
	// hidden are the federation's records of the file's names: they are served when the file gives the names up.
	hidden map[string][]dnsprovider.RRSet
}

// setFile replaces the file's records by sets. The file takes over a name that the federation also has.
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
	want, hidden := z.exchangeRecords(have, names)
	if err := z.server.Apply(ctx, z.name, dnsprovider.Diff(have, append(want, sets...))); err != nil {
		return err
	}
	z.names = names
	z.setHidden(hidden)
	z.ready.Store(true)
	return nil
}

// exchangeRecords returns the federation's records at names that the file gives up, and the federation's records that it then
// hides. have is what is served at the old and the new names.
func (z *zone) exchangeRecords(have []dnsprovider.RRSet, names map[string]bool) (back []dnsprovider.RRSet, hidden map[string][]dnsprovider.RRSet) {
	hidden = map[string][]dnsprovider.RRSet{}
	for name, sets := range z.hidden {
		if names[name] {
			hidden[name] = sets
		} else {
			back = append(back, sets...)
		}
	}
	for _, set := range have {
		if names[set.Name] && !z.names[set.Name] {
			hidden[set.Name] = append(hidden[set.Name], set)
		}
	}
	return back, hidden
}

// setHidden sets what is hidden, and logs the names if they have changed.
func (z *zone) setHidden(hidden map[string][]dnsprovider.RRSet) {
	before := z.heldNames()
	z.hidden = hidden
	if now := z.heldNames(); !slices.Equal(before, now) {
		klog.InfoS("Zone file overrides names of the federation", "names", now)
	}
}

func (z *zone) heldNames() []string { return slices.Sorted(maps.Keys(z.hidden)) }

// Held returns the names for which the file wins over the federation, sorted.
func (z *zone) Held() []string {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.heldNames()
}

// Chooses marks the server as one that gives one variant of a set at a time. See dnsprovider.Chooser.
func (z *zone) Chooses() {}

// Records returns the federation's records, served or hidden.
func (z *zone) Records(ctx context.Context, name string) ([]dnsprovider.RRSet, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	all, err := z.server.Records(ctx, name)
	all = slices.DeleteFunc(all, func(s dnsprovider.RRSet) bool { return z.names[s.Name] })
	for _, name := range z.heldNames() {
		all = append(all, z.hidden[name]...)
	}
	return all, err
}

// Apply makes the federation's changes; the first call makes the zone, with the file's records.
func (z *zone) Apply(ctx context.Context, name string, changes dnsprovider.ChangeSet) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	hidden := maps.Clone(z.hidden)
	if hidden == nil {
		hidden = map[string][]dnsprovider.RRSet{}
	}
	var free dnsprovider.ChangeSet
	for _, step := range changes {
		if !z.names[step.Name] {
			free = append(free, step)
			continue
		}
		sets, err := step.Apply(hidden[step.Name])
		if err != nil {
			return err
		}
		if hidden[step.Name] = sets; len(sets) == 0 {
			delete(hidden, step.Name)
		}
	}
	if !z.ready.Load() {
		free = append(free, dnsprovider.Diff(nil, z.file)...)
		slices.SortFunc(free, func(a, b dnsprovider.Step) int { return cmp.Compare(a.Name, b.Name) })
	}
	if err := z.server.Apply(ctx, name, free); err != nil {
		return err
	}
	z.file = nil
	z.setHidden(hidden)
	if !z.ready.Swap(true) {
		giveBack()
	}
	return nil
}

// isReady returns why questions are not answered yet.
func (z *zone) isReady() error {
	if !z.ready.Load() {
		return errors.New("the federation has not been read yet: questions get SERVFAIL")
	}
	return nil
}
