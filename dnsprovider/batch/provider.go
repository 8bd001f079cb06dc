package batch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"federation/dnsprovider"
)

// Service is a DNS service's API. Names of zones are canonical. Errors need not name the zone.
type Service interface {
	// List returns what the zone holds, in any order, without SOA and NS at the apex and without what is no plain set
	// of records. It fails for a zone that the service does not hold. If names are given, only those are needed, others
	// may be included, and a Change of them may follow. No other List with names is called between these two; but such
	// without names may be at any time.
	List(ctx context.Context, zone string, names ...string) ([]dnsprovider.RRSet, error)
	// Change makes all of the changes, or none if it fails. A RefusedError means that the service rejects them for the
	// zone. Whether that is because the zone has changed, Provider finds out by reading it.
	Change(ctx context.Context, zone string, changes dnsprovider.ChangeSet) error
}

// Provider makes a dnsprovider.Provider of a Service. It must not be copied.
type Provider struct {
	// Name is what errors call the service.
	Name    string
	Service Service
	// Most is the largest sum of sizes of the steps in one batch.
	Most int
	// Size is how much of a batch a step fills.
	Size func(dnsprovider.Step) int
	// Blind is true for a service that does not refuse stale changes by itself.
	Blind bool
	// Types are those that the service is given; empty: all.
	Types []dnsprovider.Type
	// MinTTL in seconds is the least that the service takes. TTLs below are raised to it.
	MinTTL uint32

	applying sync.Mutex
	asked    asked
}

var _ dnsprovider.Provider = (*Provider)(nil)

// Records returns what the zone holds. See dnsprovider.Provider.
func (p *Provider) Records(ctx context.Context, zone string) ([]dnsprovider.RRSet, error) {
	sets, err := p.Service.List(ctx, zone)
	if err != nil {
		return nil, p.wrapError(err, zone)
	}
	slices.SortFunc(sets, dnsprovider.Compare)
	return p.asked.restoreTTLs(sets, p.MinTTL), nil
}

// Apply makes the changes, in one batch if they fit into one. See dnsprovider.Provider.
func (p *Provider) Apply(ctx context.Context, zone string, changes dnsprovider.ChangeSet) error {
	p.applying.Lock()
	defer p.applying.Unlock()
	raised := raiseTTLs(changes, p.MinTTL)
	if err := p.apply(ctx, zone, raised); err != nil {
		return p.wrapError(err, zone)
	}
	p.asked.rememberTTLs(changes, p.MinTTL)
	return nil
}

func (p *Provider) apply(ctx context.Context, zone string, changes dnsprovider.ChangeSet) error {
	if err := p.checkSuitable(changes, zone); err != nil {
		return err
	}
	batches, err := divideSteps(changes, p.Most, p.Size)
	if err != nil {
		return err
	}
	if p.Blind || len(batches) != 1 { // none: that the service holds the zone is seen by reading it
		if err := p.check(ctx, zone, changes); err != nil {
			return err
		}
	}
	return applyEach(batches, func(batch dnsprovider.ChangeSet) error { return p.change(ctx, zone, batch) })
}

// checkSuitable fails when a record that goes or comes is outside of the zone, or of a type that the service
// is not given.
func (p *Provider) checkSuitable(changes dnsprovider.ChangeSet, zone string) error {
	for _, step := range changes {
		for _, set := range slices.Concat(step.Old, step.New) {
			if !dnsprovider.InZone(set.Name, zone) {
				return dnsprovider.Refusef("record %s %s: must be in the zone", set.Name, set.Type)
			}
			if len(p.Types) > 0 && !slices.Contains(p.Types, set.Type) {
				return dnsprovider.Refusef("record %s %s: type must be one of %v", set.Name, set.Type, p.Types)
			}
		}
	}
	return nil
}

// change makes one batch. If it is refused, reading the zone may show a conflict.
func (p *Provider) change(ctx context.Context, zone string, batch dnsprovider.ChangeSet) error {
	err := p.Service.Change(ctx, zone, batch)
	var refused *dnsprovider.RefusedError
	if errors.As(err, &refused) {
		if why := p.check(ctx, zone, batch); why != nil {
			return why
		}
	}
	return err
}

// check reports whether the zone, as it is now, takes the changes.
func (p *Provider) check(ctx context.Context, zone string, changes dnsprovider.ChangeSet) error {
	names := make([]string, len(changes))
	for i, step := range changes {
		names[i] = step.Name
	}
	sets, err := p.Service.List(ctx, zone, names...)
	if err != nil {
		return err
	}
	_, err = changes.Apply(sets)
	return err
}

// wrapError adds the service and the zone to an error.
func (p *Provider) wrapError(err error, zone string) error {
	return fmt.Errorf("%s, zone %s: %w", p.Name, zone, err)
}
