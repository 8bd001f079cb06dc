package dnsprovider

import "fmt"

// RefusedError says that a provider does not take changes, however often they are sent, because of what they are: a name that it
// cannot have, or more data than it takes. Of several changes one may be the culprit: see package split.
type RefusedError struct{ Err error }

// Error is what the provider said.
func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns what the provider said.
func (e *RefusedError) Unwrap() error { return e.Err }

// Refusef makes a RefusedError.
func Refusef(format string, args ...any) error { return &RefusedError{fmt.Errorf(format, args...)} }

// PartialError says that the first steps were made and no more. Read the zone again.
type PartialError struct {
	// Done of Of steps are made.
	Done, Of int
	// Err is why the next ones are not.
	Err error
}

// Error says how far it went, and why no further.
func (e *PartialError) Error() string {
	return fmt.Sprintf("%d of %d names were changed, then: %v", e.Done, e.Of, e.Err)
}

// Unwrap returns why the rest was not made.
func (e *PartialError) Unwrap() error { return e.Err }

// Reserver is what a Provider also is if there are names in the zone that only its server can have records at.
type Reserver interface {
	Provider
	// Reserves reports whether a canonical name is one of those.
	Reserves(name string) bool
}
