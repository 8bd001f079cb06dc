package plan

import "sync"

// Common caches the configurations that copies of one version of a federated object share, so that each is made once.
// The zero value is ready to use; it is safe for concurrent use.
type Common struct {
	mu   sync.Mutex
	made map[alike]*configuration
}

// alike is everything, besides the object's version, that a shared configuration depends on.
type alike struct {
	federation    string
	number        int64
	divided, pace bool
}

// sharedConfiguration returns a configuration that other copies may share: it must not be changed. ok is false if the copy has
// something of its own.
func (s Source) sharedConfiguration(t Target, number *int64) (c *configuration, ok bool) {
	own := s.Kind.Custom || s.Kind.Adapt != nil || s.Policy != nil && len(s.Policy.Spec.Overrides) > 0 ||
		t.Template != nil || t.Floor > 0 || t.Scaled || LeftByAutoscaler(t.Have)
	if s.Common == nil || own {
		return nil, false
	}
	of := alike{federation: t.Federation, divided: number != nil, pace: s.pacesRollout()}
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
		return nil, false // each caller makes its own, and reports the error
	}
	c.fresh = sync.OnceValue(func() []byte { return c.body(NotThere) })
	if s.Common.made == nil {
		s.Common.made = map[alike]*configuration{}
	}
	s.Common.made[of] = c
	return c, true
}
