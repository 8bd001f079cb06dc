package servicedns

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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
	// ReasonNamesTaken: others have records at names that ours should be at.
	ReasonNamesTaken = "NamesTaken"
)

// maxNamed bounds how many names a message has.
const maxNamed = 5

// state sums up where the provider stands after a pass.
func (p *publisher) state(err error) ProviderState {
	s := ProviderState{Provider: p.Name, Published: true, Reason: ReasonPublished, Message: "the zone " + p.zone.Name + " has all records"}
	switch {
	case err != nil:
		s.Published, s.Reason, s.Message = false, ReasonFailing, err.Error()
	case p.drifts > 1:
		s.Published, s.Reason = false, ReasonNotApplied
		s.Message = fmt.Sprintf("the provider says that it applied what is not in the zone, %d times now: %s", p.drifts, some(namesOf(p.drift)))
	case p.drifts == 1:
		s.Reason, s.Message = ReasonRepaired, "the zone was not as it was applied, and was put right: "+some(namesOf(p.drift))
	case len(p.taken) > 0:
		s.Reason, s.Message = ReasonNamesTaken, "others have records at names that are ours to have, which are left alone: "+some(slices.Sorted(maps.Keys(p.taken)))
	}
	return s
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
