package plan

import "sync"

// Common has what the copies of one version of a federated object have in common: clusters that get the same are told the same,
// made once. The zero value is ready to use, by several at a time.
type Common struct {
	mu   sync.Mutex
	made map[alike]*configuration
}

// alike is all, besides the version of the object, that the configuration of a copy depends on where it has nothing of its own.
type alike struct {
	federation    string
	number        int64
	divided, pace bool
}

// common returns the configuration of a copy, which others may have too: it is not to be changed. Not ok: it has something of its own.
func (s Source) common(t Target, number *int64) (c *configuration, ok bool) {
	own := s.Kind.Custom || s.Kind.Adapt != nil || s.Policy != nil && len(s.Policy.Spec.Overrides) > 0 ||
		t.Template != nil || t.Floor > 0 || t.Scaled || leftByAutoscaler(t.Have)
	if s.Common == nil || own {
		return nil, false
	}
	of := alike{federation: t.Federation, divided: number != nil, pace: s.paces()}
	if number != nil {
		of.number = *number
	}
	s.Common.mu.Lock()
	defer s.Common.mu.Unlock()
	if c := s.Common.made[of]; c != nil {
		return c, true
	}
	c, err := s.configure(t, number)
	if err != nil {
		return nil, false // whoever asks makes its own, and tells
	}
	c.fresh = sync.OnceValue(func() []byte { return c.body(NotThere) })
	if s.Common.made == nil {
		s.Common.made = map[alike]*configuration{}
	}
	s.Common.made[of] = c
	return c, true
}
