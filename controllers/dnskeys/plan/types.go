package plan

import (
	"slices"
	"time"
)

// Phase is the phase of a key.
type Phase string

// The phases, in their order.
const (
	// Published is a key that is in the zone, and signs only the keys.
	Published Phase = "Published"
	// Active is the key that signs the zone.
	Active Phase = "Active"
	// Retired is a key that has signed the zone: caches, or the parent zone, may still need it.
	Retired Phase = "Retired"
)

// Key is the state of a key, without the key.
type Key struct {
	// Tag is its key tag (RFC 4034, appendix B). It is unique in a zone.
	Tag   uint16 `json:"tag"`
	Phase Phase  `json:"phase"`
	// Since is when the phase began.
	Since time.Time `json:"since"`
}

// State is the stored state of a zone's keys.
type State struct {
	// Keys are in order of creation, with at most one Active.
	Keys []Key `json:"keys"`
	// Signed is since when the zone is signed.
	Signed time.Time `json:"signed"`
	// Submit are the keys for which the parent zone should have DS records: CDS and CDNSKEY name them (RFC 7344).
	Submit []uint16 `json:"submit,omitempty"`
	// ParentSince is since when the parent zone is seen to have the DS record of the active key and no other of ours, or of no key at
	// all; zero when it is not seen to.
	ParentSince time.Time `json:"parentSince,omitzero"`
	// ParentSecure is whether it was seen then to have the DS record of the active key.
	ParentSecure bool `json:"parentSecure,omitempty"`
	// ParentTTL is the longest time to live that its DS records were seen with.
	ParentTTL time.Duration `json:"parentTTL,omitempty"`
	// Waits says what comes next and what is waited for, for people; "" when nothing is.
	Waits string `json:"waits,omitempty"`
}

// Settings are how long others may take. Times to live are upper bounds.
type Settings struct {
	// KeyTTL is that of the keys, MaxTTL that of anything else in the zone, and DSTTL that of DS records in the parent zone; if
	// those are seen with a longer one, that counts.
	KeyTTL, MaxTTL, DSTTL time.Duration
	// Propagation is how long a change takes to all servers of the zone, and in the parent zone to all of its servers.
	Propagation time.Duration
	// Lifetime is how long a key signs until it is rolled; 0: until somebody asks for a roll.
	Lifetime time.Duration
}

// DefaultSettings are for a zone whose records live for a day at most, as the API allows, and whose keys live for keyTTL.
func DefaultSettings(keyTTL time.Duration) Settings {
	const day = 24 * time.Hour
	return Settings{KeyTTL: keyTTL, MaxTTL: day, DSTTL: day, Propagation: day}
}

// Parent is what the servers of the parent zone have.
type Parent struct {
	// All are the keys that each of them has a DS record of, Any those that one has.
	All, Any []uint16
	// Others is whether one of them has DS records of keys that are not ours.
	Others bool
	// TTL is the longest time to live of the records.
	TTL time.Duration
}

// Facts are what a decision is made from, beside the state.
type Facts struct {
	Now time.Time
	// Parent is what was seen in the parent zone; nil when it could not be asked.
	Parent *Parent
	// Roll is whether somebody asks for a roll.
	Roll bool
}

// Event is a Kubernetes event to emit.
type Event struct{ Reason, Message string }

// Decision is what follows from the facts.
type Decision struct {
	State State
	// Make says to make a key, and to Add it to the state.
	Make bool
	// Removed are keys that are gone.
	Removed []uint16
	Events  []Event
}

func (s *State) inPhase(p Phase) *Key {
	i := slices.IndexFunc(s.Keys, func(k Key) bool { return k.Phase == p })
	if i < 0 {
		return nil
	}
	return &s.Keys[i]
}

// Rolling reports whether one key takes the place of another.
func (s *State) Rolling() bool { return len(s.Keys) > 1 }

// Active returns the tag of the key that signs, 0 for none.
func (s *State) Active() uint16 {
	if k := s.inPhase(Active); k != nil {
		return k.Tag
	}
	return 0
}

// Add returns the state with a new key in it: the first one signs at once.
func Add(s State, tag uint16, now time.Time) State {
	phase := Published
	if s.inPhase(Active) == nil {
		phase = Active
		s.Signed = now
	}
	s.Keys = append(slices.Clone(s.Keys), Key{Tag: tag, Phase: phase, Since: now})
	return s
}

// Adopt returns the state with the existing keys: signing signs, more do not. Somebody may have added, removed or
// exchanged keys by hand: an unknown key counts as published now.
func Adopt(s State, signing uint16, more []uint16, now time.Time) State {
	there := append([]uint16{signing}, more...)
	s.Keys = slices.DeleteFunc(slices.Clone(s.Keys), func(k Key) bool { return !slices.Contains(there, k.Tag) })
	if s.Signed.IsZero() {
		s.Signed = now
	}
	for i := range s.Keys {
		if k := &s.Keys[i]; k.Phase == Active && k.Tag != signing {
			k.Phase, k.Since = Retired, now
		}
	}
	for _, tag := range there {
		i := slices.IndexFunc(s.Keys, func(k Key) bool { return k.Tag == tag })
		if i < 0 {
			i, s.Keys = len(s.Keys), append(s.Keys, Key{Tag: tag, Phase: Published, Since: now})
		}
		if k := &s.Keys[i]; tag == signing && k.Phase != Active {
			k.Phase, k.Since, s.ParentSince = Active, now, time.Time{}
		}
	}
	return s
}
