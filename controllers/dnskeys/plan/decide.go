package plan

import (
	"fmt"
	"slices"
	"time"
)

// Decide decides what to do with the keys now. The result does not depend on how often it is called.
func Decide(s State, settings Settings, f Facts) Decision {
	s.Keys = slices.Clone(s.Keys)
	d := &Decision{State: s}
	if d.State.inPhase(Active) == nil {
		d.Make = true
		return *d
	}
	d.recordParent(f)
	d.activatePublished(settings, f.Now)
	d.removeRetired(settings, f.Now)
	d.requestKey(settings, f)
	d.setDS(settings, f.Now)
	d.State.Waits = d.State.pendingReason(settings)
	return *d
}

func (d *Decision) addEvent(reason, format string, args ...any) {
	d.Events = append(d.Events, Event{reason, fmt.Sprintf(format, args...)})
}

// recordParent records what the parent zone has.
func (d *Decision) recordParent(f Facts) {
	p, s := f.Parent, &d.State
	if p == nil {
		return
	}
	s.ParentTTL = max(s.ParentTTL, p.TTL)
	active := s.Active()
	none := len(p.Any) == 0 && !p.Others
	secure := slices.Contains(p.All, active) && len(p.Any) == 1
	switch {
	case !none && !secure:
		if s.ParentSecure {
			d.addEvent("ParentZoneDSChanged", "the parent zone has DS records of other keys than %d alone", active)
		}
		s.ParentSince, s.ParentSecure = time.Time{}, false
	case s.ParentSince.IsZero() || s.ParentSecure != secure:
		if secure {
			d.addEvent("ParentZoneDSPublished", "the parent zone has the DS record of key %d", active)
		}
		s.ParentSince, s.ParentSecure = f.Now, secure
	}
}

// activatePublished makes the published key sign the zone once every cache that has keys has it.
func (d *Decision) activatePublished(settings Settings, now time.Time) {
	s := &d.State
	next, old := s.inPhase(Published), s.inPhase(Active)
	if next == nil || s.inPhase(Retired) != nil || now.Before(next.Since.Add(settings.keyPropagation())) {
		return
	}
	next.Phase, next.Since, old.Phase, old.Since = Active, now, Retired, now
	s.ParentSince, s.ParentSecure = time.Time{}, false
	d.addEvent("KeyActive", "key %d signs the zone in place of key %d. The parent zone must have its DS record: kubectl federation dns ds", next.Tag, old.Tag)
}

// removeRetired removes the retired key once no cached record leads to it.
func (d *Decision) removeRetired(settings Settings, now time.Time) {
	s := &d.State
	old := s.inPhase(Retired)
	if old == nil || s.ParentSince.IsZero() || now.Before(s.removableAt(settings)) {
		return
	}
	tag := old.Tag
	d.Removed = append(d.Removed, tag)
	s.Keys = slices.DeleteFunc(s.Keys, func(k Key) bool { return k.Tag == tag })
	d.addEvent("KeyRemoved", "key %d is gone: the roll to key %d is done", tag, s.Active())
}

// requestKey requests a new key.
func (d *Decision) requestKey(settings Settings, f Facts) {
	active := d.State.inPhase(Active)
	old := settings.Lifetime > 0 && !f.Now.Before(active.Since.Add(settings.Lifetime))
	d.Make = !d.State.Rolling() && (f.Roll || old)
	if f.Roll && !d.Make {
		d.addEvent("RolloverInProgress", "no other key is made: %s", d.State.pendingReason(settings))
	}
}

// setDS sets for which key the parent zone should have a DS record: none while caches may have answers from before the
// zone was signed.
func (d *Decision) setDS(settings Settings, now time.Time) {
	d.State.Submit = nil
	if !now.Before(d.State.Signed.Add(settings.cacheExpiry())) {
		d.State.Submit = []uint16{d.State.Active()}
	}
}

// keyPropagation returns the time until every cache has a key that is in the zone, or asks for it.
func (s Settings) keyPropagation() time.Duration { return s.Propagation + s.KeyTTL }

// cacheExpiry returns the time until no cache has an answer from before a change.
func (s Settings) cacheExpiry() time.Duration { return s.Propagation + s.MaxTTL }

// removableAt returns when the retired key may go, if the parent zone stays as observed.
func (s *State) removableAt(settings Settings) time.Time {
	signed := s.inPhase(Active).Since.Add(settings.cacheExpiry())
	above := s.ParentSince.Add(settings.Propagation + max(settings.DSTTL, s.ParentTTL))
	if above.After(signed) {
		return above
	}
	return signed
}

// pendingReason returns what is waited for.
func (s *State) pendingReason(settings Settings) string {
	active := s.Active()
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	if old := s.inPhase(Retired); old != nil {
		if s.ParentSince.IsZero() {
			return fmt.Sprintf("the parent zone must have the DS record of key %d and none of key %d: kubectl federation dns ds", active, old.Tag)
		}
		return fmt.Sprintf("key %d goes at %s: caches may need it until then", old.Tag, at(s.removableAt(settings)))
	}
	if next := s.inPhase(Published); next != nil {
		return fmt.Sprintf("key %d signs from %s: caches may have keys without it until then", next.Tag, at(next.Since.Add(settings.keyPropagation())))
	}
	switch {
	case len(s.Submit) == 0:
		return fmt.Sprintf("the parent zone may have the DS record of key %d from %s: caches may have answers without signatures until then", active, at(s.Signed.Add(settings.cacheExpiry())))
	case s.ParentSince.IsZero():
		return fmt.Sprintf("the parent zone is not seen to have the DS record of key %d alone: kubectl federation dns ds", active)
	case !s.ParentSecure:
		return fmt.Sprintf("the parent zone has no DS record, so resolvers check nothing; give it that of key %d: kubectl federation dns ds", active)
	}
	return ""
}
