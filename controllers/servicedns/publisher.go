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
	// Name is what conditions, metrics and logs call it; no two have the same.
	Name string
	dnsprovider.Provider
	// Local: it is in this process and nobody else writes to it, as the built-in server. Each process keeps its own, and
	// nothing in it is marked or read back. The others are kept by who leads.
	Local bool
}

const (
	// passTimeout bounds one pass over a provider; clouds take their time for thousands of changes.
	passTimeout = 2 * time.Minute
	// After a failure we wait for minBackoff, twice as long each time, and maxBackoff at most.
	minBackoff, maxBackoff = 100 * time.Millisecond, 30 * time.Second
	// Providers that others write to are read back settleTime after a change, and every resyncTime.
	settleTime, resyncTime = 10 * time.Second, 5 * time.Minute
)

// publisher keeps the zone of one provider. It has a goroutine of its own, so none waits for another.
type publisher struct {
	NamedProvider
	zone  plan.Zone
	world *world
	in    *inbox
	// report is called after each pass.
	report func(ProviderState)

	// trusted: the zone is what applied says. Where it is false, the zone is read.
	trusted bool
	// applied is what the provider has of each object, if the last pass did not fail.
	applied records
	failed  bool
	// count is the number of sets in applied.
	count int
	// put are the names in applied that do not have the form of a Service's names.
	put map[string]bool
	// taken are names at which others have records, as of the last time the zone was read.
	taken map[string]bool
	// robbed are the objects that others' records keep from having theirs, by key, with why.
	robbed map[string]string
	// reserved are the objects that want names which the provider's server has itself, by key, with why.
	reserved map[string]string
	// quarantine is what it refuses.
	quarantine quarantine
	// more: changes were left for the next pass.
	more bool
	// pending are the objects with changes that are not applied, by key, with when the change came.
	pending map[string]time.Time
	// late is when the oldest change was seen that is not applied yet.
	late time.Time
	// settling tells that something was applied since the zone was last found as it was applied.
	settling bool
	// removal is what the first pass held back; kube is for reading that a person approves it; nil: nobody can.
	removal removal
	kube    kubernetes.Interface
	// said is the last report.
	said ProviderState
	// drift is how the zone differed when it was last read, and drifts, how many times in a row it did.
	drift  dnsprovider.ChangeSet
	drifts int
}

func newPublisher(p NamedProvider, zone plan.Zone, w *world, report func(ProviderState)) *publisher {
	zone.Shared = !p.Local
	return &publisher{NamedProvider: p, zone: zone, world: w, report: report, put: map[string]bool{}, reserved: map[string]string{}, quarantine: quarantine{}, pending: map[string]time.Time{}}
}

// run keeps the zone until the context ends. It leaves the records.
func (p *publisher) run(ctx context.Context) {
	p.trusted, p.failed = false, p.applied != nil // it may have ended in the middle of a pass
	p.in = p.world.join()
	defer p.world.leave(p.in)
	select { // until the world is planned, all that is in the zone would be too much
	case <-ctx.Done():
		return
	case <-p.in.wake:
		p.in.again()
	}
	reread := time.NewTimer(p.again())
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
			if at, is := p.quarantine.next(); !is || time.Now().Before(at) {
				continue
			}
			p.trusted = false
		case <-approvals.C:
			if !p.approval(ctx) {
				continue
			}
		}
		err := p.pass(ctx)
		if ctx.Err() != nil {
			return
		}
		p.say(p.state(err))
		if at, is := p.quarantine.next(); is {
			refused.Reset(time.Until(at))
		}
		if due || p.settling && !settling {
			reread.Reset(p.again())
		}
		if err == nil {
			backoff = minBackoff
			continue
		}
		klog.ErrorS(err, "Failed to apply DNS records", "provider", p.Name, "zone", p.zone.Name, "retryAfter", backoff)
		_ = p.watched(func() error { pause(ctx, backoff); return nil })
		backoff = min(2*backoff, maxBackoff)
		p.in.again()
	}
}

// again is when to read the zone again: soon after something was applied, and later each time that this did not help.
func (p *publisher) again() time.Duration {
	if p.settling {
		return min(settleTime<<min(max(p.drifts-1, 0), 8), resyncTime)
	}
	return resyncTime
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// pass applies what has changed or, where the zone is not trusted, what it lacks.
func (p *publisher) pass(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	want := p.take()
	err := p.watched(func() error {
		have, err := p.have(ctx, want)
		if err != nil {
			return err
		}
		return p.become(ctx, have, want)
	})
	if p.trusted, p.failed = err == nil, err != nil; err == nil {
		clear(p.pending)
		if p.more {
			p.trusted = false
			p.in.again() // at once: what came meanwhile goes with it
		}
		if p.removal.approved {
			p.withdraw(ctx)
		}
	}
	return err
}

// take takes what shall be there: the records of all objects where the zone has to be read.
func (p *publisher) take() records {
	for key, since := range p.world.changes(p.in) {
		if _, waits := p.pending[key]; !waits {
			p.pending[key] = since
		}
	}
	want, since := p.world.take(p.in, !p.trusted)
	if p.late.IsZero() {
		p.late = since
	}
	if p.trusted && p.unknown(want) {
		p.trusted = false
		want, _ = p.world.take(p.in, true)
	}
	return want
}

// unknown reports whether there are new names of which only the zone can tell whether they are free, or what they have.
func (p *publisher) unknown(want records) bool {
	for _, sets := range want {
		for _, set := range sets {
			if p.removal.names[set.Name] || p.zone.Shared && !p.zone.Owns(set.Name) && !p.put[set.Name] && !p.taken[set.Name] {
				return true
			}
		}
	}
	return false
}

// have returns what the provider has of the objects in want; where that is not known, all that it has of ours.
func (p *publisher) have(ctx context.Context, want records) (have []dnsprovider.RRSet, err error) {
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
	have, others := p.zone.Split(all, p.put)
	p.taken = plan.Taken(others, want.all())
	p.robbed = map[string]string{}
	for key, sets := range want {
		for _, set := range sets {
			if p.taken[set.Name] {
				p.robbed[key] = "others have records at " + set.Name
			}
		}
	}
	if p.applied != nil { // what is held is decided in the first pass that works
		p.removal.release(have, p.zone.Marked(want.all()))
		have = p.removal.without(have)
	}
	p.judge(have)
	return have, nil
}

// judge compares what the zone has with what was applied, if we know that.
func (p *publisher) judge(have []dnsprovider.RRSet) {
	if p.failed || p.applied == nil {
		return
	}
	if p.drift = dnsprovider.Diff(p.quarantine.without(have), p.quarantine.without(p.applied.all())); len(p.drift) == 0 {
		p.settling, p.drifts = false, 0
		return
	}
	p.drifts++
	observeRepair(p.Name, len(p.drift))
	klog.InfoS("Corrected drift in the DNS zone", "provider", p.Name, "zone", p.zone.Name, "names", len(p.drift), "first", p.drift[0].Name)
}

// become takes the zone from have to what is wanted, and remembers it.
func (p *publisher) become(ctx context.Context, have []dnsprovider.RRSet, want records) error {
	next := make(records, len(want))
	for key, sets := range want {
		next[key] = p.shape(key, sets)
	}
	if p.applied == nil && p.zone.Shared {
		have = p.removal.hold(have, next.all())
	}
	if err := p.apply(ctx, dnsprovider.Diff(have, next.all()), have, next); err != nil {
		return err
	}
	p.late = time.Time{}
	if !p.trusted {
		p.put, p.applied, p.count = map[string]bool{}, records{}, 0
	}
	p.commit(next)
	observeRecords(p.Name, p.count)
	return nil
}

// shape returns the sets of an object as this provider has them.
func (p *publisher) shape(key string, sets []dnsprovider.RRSet) []dnsprovider.RRSet {
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

// commit remembers what the provider has of some objects now.
func (p *publisher) commit(next records) {
	for key := range next {
		for _, set := range p.applied[key] {
			delete(p.put, set.Name)
		}
		p.count -= len(p.applied[key])
	}
	for key, sets := range next {
		for _, set := range sets {
			if !p.zone.Owns(set.Name) {
				p.put[set.Name] = true
			}
		}
		p.count += len(sets)
		if p.applied[key] = sets; len(sets) == 0 {
			delete(p.applied, key)
		}
	}
}
