package servicedns

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"federation/controllers/servicedns/plan"
	"federation/dnsprovider"
)

// NamedProvider is one of the providers that hold the zone.
type NamedProvider struct {
	// Name identifies it in conditions, metrics and logs; it must be unique.
	Name string
	dnsprovider.Provider
	// Local: it is in this process and nobody else writes to it, like the built-in server. Each process keeps its own,
	// and nothing in it is marked or read back. The leader keeps the others.
	Local bool
}

const (
	// passTimeout bounds one pass over a provider; cloud providers are slow with thousands of changes.
	passTimeout = 2 * time.Minute
	// After a failure the next attempt waits minBackoff, doubled each time up to maxBackoff.
	minBackoff, maxBackoff = 100 * time.Millisecond, 30 * time.Second
	// Providers that others write to are read back settleTime after a change, and every resyncTime.
	settleTime, resyncTime = 10 * time.Second, 5 * time.Minute
)

// publisher keeps the zone of one provider. Each has its own goroutine, so that none waits for another.
type publisher struct {
	NamedProvider
	zone  plan.Zone
	world *desiredRecords
	in    *subscription
	// published, if set, is called with the objects whose changes were applied, by key, and the records of all.
	published func(changed map[string]time.Time, all records)
	// report is called after each pass.
	report func(ProviderState)

	// trusted: the zone equals applied. If false, the zone is read.
	trusted bool
	// applied is what the provider has of each object, if the last pass succeeded.
	applied records
	failed  bool
	// count is the number of sets in applied.
	count int
	// ownedNames has the names in applied that do not have the form of a Service's names.
	ownedNames map[string]bool
	// taken has the names at which others have records, as last read.
	taken map[string]bool
	// conflicts has the objects whose names others' records block, by key, with the reason.
	conflicts map[string]string
	// reserved has the objects that ask for names of the provider's server itself, by key, with the reason.
	reserved map[string]string
	// quarantine is what the provider refuses.
	quarantine quarantine
	// more: changes are left for the next pass.
	more bool
	// pending has the objects with unapplied changes, by key, with the time of the change.
	pending map[string]time.Time
	// oldestPending is the time of the oldest unapplied change.
	oldestPending time.Time
	// settling: something was applied since the zone was last found in sync.
	settling bool
	// removal is what the first pass held back. kube reads its approval; nil: it cannot be approved.
	removal removal
	kube    kubernetes.Interface
	// fence is as in Options; nil: none.
	fence func() error
	// said is the last report.
	said ProviderState
	// drift is how the zone differed at the last read, drifts how many times in a row it did.
	drift  dnsprovider.ChangeSet
	drifts int
}

func newPublisher(p NamedProvider, zone plan.Zone, w *desiredRecords, report func(ProviderState)) *publisher {
	zone.Shared = !p.Local
	return &publisher{NamedProvider: p, zone: zone, world: w, report: report, ownedNames: map[string]bool{}, reserved: map[string]string{}, quarantine: quarantine{}, pending: map[string]time.Time{}}
}

// run keeps the zone until the context ends. It leaves the records.
func (p *publisher) run(ctx context.Context) {
	p.trusted, p.failed = false, p.applied != nil // it may have ended in the middle of a pass
	p.in = p.world.subscribe()
	defer p.world.unsubscribe(p.in)
	select { // until the world is planned, everything in the zone would look superfluous
	case <-ctx.Done():
		return
	case <-p.in.wake:
		p.in.wake.Signal()
	}
	reread := time.NewTimer(p.nextRead())
	defer reread.Stop()
	approvals := time.NewTicker(settleTime)
	defer approvals.Stop()
	refused := time.NewTimer(0)
	defer refused.Stop()
	for backoff := minBackoff; ; {
		settling, due := p.settling, false
		select {
		case <-ctx.Done():
			return
		case <-p.in.wake:
		case <-reread.C:
			p.trusted, due = p.trusted && p.Local, true
		case <-refused.C:
			if at, is := p.quarantine.nextDue(); !is || time.Now().Before(at) {
				continue
			}
			p.trusted = false
		case <-approvals.C:
			if !p.readApproval(ctx) {
				continue
			}
		}
		err := p.reconcile(ctx)
		if ctx.Err() != nil {
			return
		}
		p.reportState(p.providerState(err))
		if at, is := p.quarantine.nextDue(); is {
			refused.Reset(time.Until(at))
		}
		if due || p.settling && !settling {
			reread.Reset(p.nextRead())
		}
		if err == nil {
			backoff = minBackoff
			continue
		}
		klog.ErrorS(err, "Failed to apply DNS records", "provider", p.Name, "zone", p.zone.Name, "retryAfter", backoff)
		_ = p.withWatchdog(func() error { waitFor(ctx, backoff); return nil })
		backoff = min(2*backoff, maxBackoff)
		p.in.wake.Signal()
	}
}

// nextRead returns when to read the zone again: soon after a change, and later each time that this did not help.
func (p *publisher) nextRead() time.Duration {
	if p.settling {
		return min(settleTime<<min(max(p.drifts-1, 0), 8), resyncTime)
	}
	return resyncTime
}

func waitFor(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// reconcile applies what has changed or, if the zone is not trusted, what it lacks.
func (p *publisher) reconcile(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	want := p.takeWanted()
	err := p.withWatchdog(func() error {
		have, err := p.readProvider(ctx, want)
		if err != nil {
			return err
		}
		return p.converge(ctx, have, want)
	})
	if p.trusted, p.failed = err == nil, err != nil; err == nil {
		if p.published != nil {
			p.published(p.pending, p.applied)
		}
		clear(p.pending)
		if p.more {
			p.trusted = false
			p.in.wake.Signal() // at once: later changes go with it
		}
		if p.removal.approved {
			p.clearApproval(ctx)
		}
	}
	return err
}

// takeWanted takes the wanted records: those of all objects if the zone must be read.
func (p *publisher) takeWanted() records {
	for key, since := range p.world.pendingKeys(p.in) {
		if _, waits := p.pending[key]; !waits {
			p.pending[key] = since
		}
	}
	want, since := p.world.takeChanges(p.in, !p.trusted)
	if p.oldestPending.IsZero() {
		p.oldestPending = since
	}
	if p.trusted && p.hasNewNames(want) {
		p.trusted = false
		want, _ = p.world.takeChanges(p.in, true)
	}
	return want
}

// hasNewNames reports whether there are new names that may be taken, which only the zone can tell.
func (p *publisher) hasNewNames(want records) bool {
	for _, sets := range want {
		for _, set := range sets {
			if p.removal.names[set.Name] || p.zone.Shared && !p.zone.Owns(set.Name) && !p.ownedNames[set.Name] && !p.taken[set.Name] {
				return true
			}
		}
	}
	return false
}

// readProvider returns what the provider has of the objects in want, or all that it has of ours if that is not known.
func (p *publisher) readProvider(ctx context.Context, want records) (have []dnsprovider.RRSet, err error) {
	if p.trusted {
		for key := range want {
			have = append(have, p.applied[key]...)
		}
		return have, nil
	}
	all, err := p.Records(ctx, p.zone.Name)
	if err != nil {
		return nil, fmt.Errorf("reading the zone: %w", err)
	}
	have, others := p.zone.Split(all, p.ownedNames)
	p.taken = plan.Taken(others, want.all())
	p.conflicts = map[string]string{}
	for key, sets := range want {
		for _, set := range sets {
			if p.taken[set.Name] {
				p.conflicts[key] = "others have records at " + set.Name
			}
		}
	}
	if p.applied != nil { // the first successful pass decides what to hold back
		p.removal.release(have, p.zone.Marked(want.all()))
		have = p.removal.withoutHeld(have)
	}
	p.detectDrift(have)
	return have, nil
}

// detectDrift compares the zone with what was applied, if that is known.
func (p *publisher) detectDrift(have []dnsprovider.RRSet) {
	if p.failed || p.applied == nil {
		return
	}
	if p.drift = dnsprovider.Diff(p.quarantine.withoutQuarantined(have), p.quarantine.withoutQuarantined(p.applied.all())); len(p.drift) == 0 {
		p.settling, p.drifts = false, 0
		return
	}
	p.drifts++
	observeRepair(p.Name, len(p.drift))
	klog.InfoS("Corrected drift in the DNS zone", "provider", p.Name, "zone", p.zone.Name, "names", len(p.drift), "first", p.drift[0].Name)
}

// converge changes the zone from have to want, and remembers it.
func (p *publisher) converge(ctx context.Context, have []dnsprovider.RRSet, want records) error {
	next := make(records, len(want))
	for key, sets := range want {
		next[key] = p.render(key, sets)
	}
	if p.applied == nil && p.zone.Shared {
		have = p.removal.holdBack(have, next.all())
	}
	if err := p.applyChanges(ctx, dnsprovider.Diff(have, next.all()), have, next); err != nil {
		return err
	}
	p.oldestPending = time.Time{}
	if !p.trusted {
		p.ownedNames, p.applied, p.count = map[string]bool{}, records{}, 0
	}
	p.storeApplied(next)
	observeRecords(p.Name, p.count)
	return nil
}

// render returns the sets of an object in this provider's form.
func (p *publisher) render(key string, sets []dnsprovider.RRSet) []dnsprovider.RRSet {
	delete(p.reserved, key)
	reserver, reserves := p.Provider.(dnsprovider.Reserver)
	_, chooses := p.Provider.(dnsprovider.Chooser)
	var out []dnsprovider.RRSet
	for _, set := range sets {
		if p.taken[set.Name] {
			continue
		}
		if reserves && reserver.Reserves(set.Name) {
			p.reserved[key] = fmt.Sprintf("it cannot have %s: the server's own records are there", set.Name)
			continue
		}
		if !chooses {
			set = set.Plain()
		}
		out = append(out, set)
	}
	return p.zone.Marked(out)
}

// storeApplied remembers what the provider has of some objects.
func (p *publisher) storeApplied(next records) {
	for key := range next {
		for _, set := range p.applied[key] {
			delete(p.ownedNames, set.Name)
		}
		p.count -= len(p.applied[key])
	}
	for key, sets := range next {
		for _, set := range sets {
			if !p.zone.Owns(set.Name) {
				p.ownedNames[set.Name] = true
			}
		}
		p.count += len(sets)
		if p.applied[key] = sets; len(sets) == 0 {
			delete(p.applied, key)
		}
	}
}
