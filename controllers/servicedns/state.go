package servicedns

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/dnsprovider"
)

// ProviderState is how a provider stands.
type ProviderState struct {
	// Provider is its name.
	Provider string
	// Published: it has all records, but for those of which Message says why not.
	Published bool
	// Reason is one of those below; Message is a sentence for people.
	Reason, Message string
	// Objects are those whose records it does not have as they should be, by their key, with why.
	Objects map[string]string
	// Unread: this process has not read its zone yet, so of objects that have not changed since the start nothing is known.
	Unread bool
}

// Reasons of a ProviderState.
const (
	// ReasonPublished: all is well.
	ReasonPublished = "Published"
	// ReasonFailing: the last attempt failed.
	ReasonFailing = "Failing"
	// ReasonNotApplied: it said that it applied records, and does not have them.
	ReasonNotApplied = "NotApplied"
	// ReasonRepaired: somebody else changed our records in the zone, which was put right.
	ReasonRepaired = "Repaired"
	// ReasonHeldByZoneFile: the provider's zone file has names of ours, and wins.
	ReasonHeldByZoneFile = "HeldByZoneFile"
	// ReasonNamesTaken: others have records at names that ours should be at.
	ReasonNamesTaken = "NamesTaken"
)

// holder is a Provider at which somebody else goes first: what it is told of the names that he has it keeps, and serves
// when he leaves them.
type holder interface {
	// Held returns those of the names that it was told of, sorted.
	Held() []string
}

// maxNamed bounds how many names a message has.
const maxNamed = 5

// state sums up where the provider stands after a pass.
func (p *publisher) state(err error) ProviderState {
	s := ProviderState{Provider: p.Name, Published: true, Reason: ReasonPublished, Message: "the zone " + p.zone.Name + " has all records"}
	s.Objects, s.Unread = p.inTheWay(time.Now()), p.applied == nil
	switch {
	case err != nil:
		s.Published, s.Reason, s.Message = false, ReasonFailing, err.Error()
	case p.drifts > 1:
		s.Published, s.Reason = false, ReasonNotApplied
		s.Message = fmt.Sprintf("the provider says that it applied what is not in the zone, %d times now: %s", p.drifts, some(namesOf(p.drift)))
	case p.drifts == 1:
		s.Reason, s.Message = ReasonRepaired, "the zone was not as it was applied, and was put right: "+some(namesOf(p.drift))
	case len(p.held()) > 0:
		s.Reason, s.Message = ReasonHeldByZoneFile, "held by the zone file, which is served and not what the federation says: "+some(p.held())
	case len(p.taken) > 0:
		s.Reason, s.Message = ReasonNamesTaken, "others have records at names that are ours to have, which are left alone: "+some(slices.Sorted(maps.Keys(p.taken)))
	}
	return s
}

// behindAfter is how long a change may wait for a provider before its object says so: others go on meanwhile.
const behindAfter = 10 * time.Second

// inTheWay returns the objects that the provider does not have as they should be, with why.
func (p *publisher) inTheWay(now time.Time) map[string]string {
	objects := maps.Clone(p.robbed)
	if objects == nil {
		objects = map[string]string{}
	}
	for key, since := range p.pending {
		if now.Sub(since) >= behindAfter {
			objects[key] = fmt.Sprintf("it does not have the change of %s yet; why, says %s/%s", since.UTC().Format(time.RFC3339), v1beta1.FederationNamespace, v1beta1.DNSProvidersConfigMap)
		}
	}
	return objects
}

func (p *publisher) held() []string {
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

func some(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}
