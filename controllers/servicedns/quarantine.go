package servicedns

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"federation/controllers/servicedns/plan"
	"federation/dnsprovider"
	"federation/dnsprovider/split"
)

// quarantine is what a provider refuses, by name. It is left out of changes, so that everything else is applied (ADR
// 89), and retried from time to time.
type quarantine map[string]*refusal

// refusal is a name whose records a provider refuses.
type refusal struct {
	// changes are what it refused.
	changes dnsprovider.ChangeSet
	// why is the provider's error; key is the object of the name, or "".
	why, key string
	// due is the time of the next try, pause the delay before it.
	due   time.Time
	pause time.Duration
}

const (
	// maxRefused bounds how many refused names one pass finds: the rest waits for the next one.
	maxRefused = 64
	// maxAgain bounds retries of names that were refused before.
	maxAgain = 4
	// minPause is the delay before the first retry of a refused name. It doubles up to maxPause.
	minPause, maxPause = 30 * time.Second, 30 * time.Minute
)

// nextDue returns when the next name is due; false if none is.
func (q quarantine) nextDue() (due time.Time, is bool) {
	for _, r := range q {
		if !is || r.due.Before(due) {
			due, is = r.due, true
		}
	}
	return due, is
}

// splitChanges divides changes into new ones and retries that are due. It leaves out those that still wait. It forgets those
// that are no longer wanted, if known reports that everything wanted of the object is known.
func (q quarantine) splitChanges(changes dnsprovider.ChangeSet, known func(key string) bool) (now, again dnsprovider.ChangeSet) {
	by := map[string]dnsprovider.ChangeSet{}
	for _, step := range changes {
		by[split.About(step.Name)] = append(by[split.About(step.Name)], step)
	}
	maps.DeleteFunc(q, func(name string, r *refusal) bool {
		return known(r.key) && by[name].String() != r.changes.String()
	})
	for _, step := range changes {
		switch r := q[split.About(step.Name)]; {
		case r == nil:
			now = append(now, step)
		case !time.Now().Before(r.due):
			again = append(again, step)
		}
	}
	return now, again
}

// recordResult records the result of changes: what was applied leaves quarantine, what was refused enters it. Retries that were
// left over wait as long as refused ones.
func (q quarantine) recordResult(changes dnsprovider.ChangeSet, result split.Result, owner map[string]string) {
	left := map[string]bool{}
	for _, step := range result.Left {
		left[split.About(step.Name)] = true
	}
	for _, step := range changes {
		name := split.About(step.Name)
		r := q[name]
		refused, is := result.Refused[name]
		switch due := r == nil || !time.Now().Before(r.due); { // else the name's other step was recorded before
		case is && due:
			q.addRefused(name, refusal{changes: refused.Changes, why: refused.Err.Error(), key: owner[name]})
		case left[name] && r != nil && due:
			q.addRefused(name, *r)
		case !is && !left[name]:
			delete(q, name)
		}
	}
}

func (q quarantine) addRefused(name string, r refusal) {
	r.pause = minPause
	if before := q[name]; before != nil {
		r.pause = min(2*before.pause, maxPause)
	}
	r.due = time.Now().Add(r.pause)
	q[name] = &r
}

// applyChanges applies changes at the provider, given what it has, and then corrects next by what was refused.
func (p *publisher) applyChanges(ctx context.Context, changes dnsprovider.ChangeSet, have []dnsprovider.RRSet, next records) error {
	now, again := p.quarantine.splitChanges(changes, func(key string) bool {
		_, is := next[key]
		return is || !p.trusted
	})
	p.settling = p.zone.Shared && (p.settling || len(now)+len(again) > 0)
	owner := p.ownersOf(next)
	var left dnsprovider.ChangeSet
	if len(now) > 0 || p.failed || p.applied == nil {
		result, err := p.applySplit(ctx, now, maxRefused)
		p.quarantine.recordResult(now, result, owner)
		if left = result.Left; err != nil {
			return err
		}
	}
	if len(again) > 0 {
		result, err := p.applySplit(ctx, again, maxAgain)
		p.quarantine.recordResult(again, result, owner)
		if err != nil {
			return err
		}
	}
	p.more = len(left) > 0
	p.keepUnapplied(have, next, owner, left)
	return nil
}

// Apply changes the zone, unless another process may lead by now. See dnsprovider.Provider.
func (p *publisher) Apply(ctx context.Context, zone string, changes dnsprovider.ChangeSet) error {
	if p.fence != nil {
		if err := p.fence(); err != nil {
			return err
		}
	}
	return p.NamedProvider.Apply(ctx, zone, changes)
}

func (p *publisher) applySplit(ctx context.Context, changes dnsprovider.ChangeSet, most int) (split.Result, error) {
	started := time.Now()
	result, err := split.Apply(ctx, p, p.zone.Name, changes, most)
	observeApply(p.Name, started, p.oldestPending, err)
	if err == nil {
		klog.V(2).InfoS("DNS records applied", "provider", p.Name, "zone", p.zone.Name, "names", len(changes), "refused", len(result.Refused), "left", len(result.Left))
		klog.V(4).InfoS("DNS records changed", "provider", p.Name, "zone", p.zone.Name, "changes", changes)
	}
	return result, err
}

// ownersOf returns the object of each name in the provider or in next.
func (p *publisher) ownersOf(next records) map[string]string {
	owner := map[string]string{}
	for key := range next {
		for _, sets := range [][]dnsprovider.RRSet{p.applied[key], next[key]} {
			for _, set := range sets {
				owner[split.About(set.Name)] = key
			}
		}
	}
	return owner
}

// keepUnapplied sets next to the previous content at names whose changes were not applied.
func (p *publisher) keepUnapplied(have []dnsprovider.RRSet, next records, owner map[string]string, left dnsprovider.ChangeSet) {
	unmade := map[string]bool{}
	for _, step := range left {
		unmade[split.About(step.Name)] = true
	}
	for name := range p.quarantine {
		unmade[name] = true
	}
	if len(unmade) == 0 {
		return
	}
	is := func(set dnsprovider.RRSet) bool { return unmade[split.About(set.Name)] }
	for key, sets := range next {
		if slices.ContainsFunc(sets, is) {
			next[key] = slices.DeleteFunc(slices.Clone(sets), is)
		}
	}
	for _, set := range have {
		if key := owner[split.About(set.Name)]; is(set) && key != "" {
			next[key] = append(slices.Clip(next[key]), set)
		}
	}
}

// lastingFaults returns the objects that lack records until something changes, with the reason.
func (p *publisher) lastingFaults() map[string]plan.Reason {
	all := map[string]plan.Reason{}
	for key, why := range p.conflicts {
		all[key] = plan.Reason{Code: plan.ProviderOutOfSync, Message: why}
	}
	for key, why := range p.reserved {
		all[key] = plan.Reason{Code: plan.Rejected, Message: why}
	}
	for _, name := range slices.Sorted(maps.Keys(p.quarantine)) {
		if r := p.quarantine[name]; r.key != "" {
			all[r.key] = plan.Reason{Code: plan.Rejected, Message: fmt.Sprintf("it refuses %s: %s; what was there before stays", name, r.why)}
		}
	}
	return all
}

// withoutQuarantined removes the sets at names in quarantine.
func (q quarantine) withoutQuarantined(sets []dnsprovider.RRSet) []dnsprovider.RRSet {
	if len(q) == 0 {
		return sets
	}
	return slices.DeleteFunc(slices.Clone(sets), func(set dnsprovider.RRSet) bool { return q[split.About(set.Name)] != nil })
}
