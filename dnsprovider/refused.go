package dnsprovider

import "fmt"

// RefusedError means that a provider does not take changes, however often they are sent, because of their content: a
// reserved name, or too much data. Of several changes one may be the culprit: see package split.
type RefusedError struct{ Err error }

// Error returns what the provider said.
func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns what the provider said.
func (e *RefusedError) Unwrap() error { return e.Err }

// Refusef makes a RefusedError.
func Refusef(format string, args ...any) error { return &RefusedError{fmt.Errorf(format, args...)} }

// PartialError means that only the first steps were made. Read the zone again.
type PartialError struct {
	// Done of Of steps are made.
	Done, Of int
	// Err is why the next ones are not.
	Err error
}

// Error returns how far it went, and why no further.
func (e *PartialError) Error() string {
	return fmt.Sprintf("%d of %d names were changed, then: %v", e.Done, e.Of, e.Err)
}

// Unwrap returns why the rest was not made.
func (e *PartialError) Unwrap() error { return e.Err }

// Reserver is implemented by a Provider with names that only its server can have records at.
type Reserver interface {
	Provider
	// Reserves reports whether a canonical name is one of those.
	Reserves(name string) bool
}
