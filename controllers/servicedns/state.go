package servicedns

import (
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/servicedns/plan"
	"federation/dnsprovider"
)

// ProviderState is the state of a provider.
type ProviderState struct {
	// Provider is its name.
	Provider string
	// Published: it has all records, except those that Message names.
	Published bool
	// Reason is one of those below; Message is a sentence for people.
	Reason, Message string
	// Objects are those whose records it lacks, by key, with the reason.
	Objects map[string]plan.Reason
	// Unread: this process has not read its zone yet, so nothing is known of objects that have not changed since the
	// start.
	Unread bool
}

// Reasons of a ProviderState.
const (
	// ReasonPublished: all records are there.
	ReasonPublished = "Published"
	// ReasonFailing: the last attempt failed.
	ReasonFailing = "Failing"
	// ReasonNotResponding: an attempt is in progress, and changes have waited for it for too long.
	ReasonNotResponding = "NotResponding"
	// ReasonRemovalPendingApproval: the first pass would have removed most names of the zone, which needs approval.
	ReasonRemovalPendingApproval = "RemovalPendingApproval"
	// ReasonChangesNotApplied: it reported success for records that it does not have.
	ReasonChangesNotApplied = "ChangesNotApplied"
	// ReasonRejected: it refuses some records, which stay as they were; it has all others.
	ReasonRejected = "Rejected"
	// ReasonDriftCorrected: somebody else changed our records in the zone, which was corrected.
	ReasonDriftCorrected = "DriftCorrected"
	// ReasonOverriddenByZoneFile: the provider's zone file has names of ours, and wins.
	ReasonOverriddenByZoneFile = "OverriddenByZoneFile"
	// ReasonNameConflict: others have records at our names.
	ReasonNameConflict = "NameConflict"
)

// holder is a Provider in which another source takes precedence: it keeps records for names of that source, and serves
// them when the source gives them up.
type holder interface {
	// Held returns those names, sorted.
	Held() []string
}

// maxNamed bounds how many names a message lists.
const maxNamed = 5

// providerState returns the provider's state after a pass.
func (p *publisher) providerState(err error) ProviderState {
	s := ProviderState{Provider: p.Name, Published: true, Reason: ReasonPublished, Message: "the zone " + p.zone.Name + " has all records"}
	var oldest time.Time
	s.Objects, oldest = p.inTheWay(p.lastingFaults())
	s.Unread = p.applied == nil
	switch {
	case err != nil:
		s.Published, s.Reason, s.Message = false, ReasonFailing, err.Error()
	case !oldest.IsZero():
		s.notAnswering(oldest)
	case len(p.removal.names) > 0:
		p.removal.describeIn(&s)
	case p.drifts > 1:
		s.Published, s.Reason = false, ReasonChangesNotApplied
		s.Message = fmt.Sprintf("the provider reported success for records that are not in the zone, %d times now: %s", p.drifts, joinSome(namesOf(p.drift)))
	case len(p.quarantine) > 0:
		names := slices.Sorted(maps.Keys(p.quarantine))
		s.Published, s.Reason = p.count > 0, ReasonRejected
		s.Message = fmt.Sprintf("it refuses records, which stay as they were; it has all others: %s; the first: %s", joinSome(names), p.quarantine[names[0]].why)
	case p.drifts == 1:
		s.Reason, s.Message = ReasonDriftCorrected, "the zone differed from what was applied, and was corrected: "+joinSome(namesOf(p.drift))
	case len(p.heldNames()) > 0:
		s.Reason, s.Message = ReasonOverriddenByZoneFile, "held by the zone file, which wins over the federation: "+joinSome(p.heldNames())
	case len(p.taken) > 0:
		s.Reason, s.Message = ReasonNameConflict, "others have records at names of the federation, which leaves them alone: "+joinSome(slices.Sorted(maps.Keys(p.taken)))
	}
	return s
}

// notAnswering records that a change of that time is not published yet.
func (s *ProviderState) notAnswering(since time.Time) {
	s.Published, s.Reason = false, ReasonNotResponding
	s.Message = "it has not answered since " + since.UTC().Format(time.RFC3339) + ": changes are not in its zone yet"
	if s.Unread {
		s.Message = "it has not answered since " + since.UTC().Format(time.RFC3339) + ": its zone is unknown"
	}
}

// reportState reports the provider's state.
func (p *publisher) reportState(s ProviderState) {
	p.said = s
	p.report(s)
}

// withWatchdog runs do, which may take long. Meanwhile it updates the provider's state as changes wait: no answer is no
// evidence that nothing has changed.
func (p *publisher) withWatchdog(do func() error) error {
	lasting, unread, since := p.lastingFaults(), p.applied == nil, time.Now() // which do may change
	done, panicked := make(chan error, 1), make(chan string, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				panicked <- fmt.Sprintf("%v\n%s", r, debug.Stack())
			}
		}()
		done <- do()
	}()
	tick := time.NewTicker(behindAfter / 10)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case what := <-panicked:
			panic(what) // here, where it is recovered
		case now := <-tick.C:
			s := p.said
			var oldest time.Time
			if s.Objects, oldest = p.inTheWay(lasting); oldest.IsZero() && unread && now.Sub(since) >= behindAfter {
				oldest = since
			}
			if !oldest.IsZero() && (s.Published || s.Reason == "") {
				s.Provider, s.Unread = p.Name, unread
				s.notAnswering(oldest)
			}
			if !s.equal(p.said) {
				p.reportState(s)
			}
		}
	}
}

func (s ProviderState) equal(o ProviderState) bool {
	return s.Published == o.Published && s.Reason == o.Reason && s.Message == o.Message && s.Unread == o.Unread && maps.Equal(s.Objects, o.Objects)
}

// behindAfter is how long a change may wait for a provider before it counts as out of sync and its object reports it.
const behindAfter = 10 * time.Second

// inTheWay returns the objects whose records the provider lacks, with the reason, and the time of the oldest change
// that has waited for too long; zero if none has.
func (p *publisher) inTheWay(lasting map[string]plan.Reason) (objects map[string]plan.Reason, oldest time.Time) {
	objects = maps.Clone(lasting)
	waiting := p.world.pendingKeys(p.in)
	maps.Copy(waiting, p.pending)
	for key, since := range waiting {
		if time.Since(since) < behindAfter {
			continue
		}
		objects[key] = plan.Reason{Code: plan.ProviderOutOfSync, Message: fmt.Sprintf("it does not have the change of %s yet; why, says %s/%s", since.UTC().Format(time.RFC3339), v1beta1.FederationNamespace, v1beta1.DNSProvidersConfigMap)}
		if oldest.IsZero() || since.Before(oldest) {
			oldest = since
		}
	}
	return objects, oldest
}

func (p *publisher) heldNames() []string {
	if h, is := p.Provider.(holder); is {
		return h.Held()
	}
	return nil
}

func namesOf(changes dnsprovider.ChangeSet) (names []string) {
	for _, step := range changes {
		names = append(names, step.Name)
	}
	return names
}

func joinSome(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}
