package batch

import (
	"fmt"

	"federation/dnsprovider"
)

// divide makes batches of steps whose sizes sum up to most at most. Steps stay whole and in order.
// It fails when one step alone is larger than that.
func divide(changes dnsprovider.ChangeSet, most int, size func(dnsprovider.Step) int) ([]dnsprovider.ChangeSet, error) {
	var batches []dnsprovider.ChangeSet
	start, filled := 0, 0
	for i, step := range changes {
		n := size(step)
		if n > most {
			return nil, fmt.Errorf("name %s: its change has the size %d, and at most %d are taken at once", step.Name, n, most)
		}
		if filled+n > most {
			batches = append(batches, changes[start:i])
			start, filled = i, 0
		}
		filled += n
	}
	if start < len(changes) {
		batches = append(batches, changes[start:])
	}
	return batches, nil
}

// Records counts the records that go and come in a step: a size that many services limit.
func Records(step dnsprovider.Step) (n int) {
	for _, sets := range [][]dnsprovider.RRSet{step.Old, step.New} {
		for _, set := range sets {
			n += len(set.Rdata)
		}
	}
	return n
}

// Characters counts those of all data that goes and comes in a step.
func Characters(step dnsprovider.Step) (n int) {
	for _, sets := range [][]dnsprovider.RRSet{step.Old, step.New} {
		for _, set := range sets {
			for _, data := range set.Rdata {
				n += len(data)
			}
		}
	}
	return n
}

// PartialError says that the first batches were made and no more. Read the zone again.
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

// each hands one batch after the other to apply. It stops at the first error, which is a PartialError
// when batches were made before it.
func each(batches []dnsprovider.ChangeSet, apply func(dnsprovider.ChangeSet) error) error {
	done, all := 0, 0
	for _, batch := range batches {
		all += len(batch)
	}
	for _, batch := range batches {
		if err := apply(batch); err != nil {
			if done > 0 {
				err = &PartialError{Done: done, Of: all, Err: err}
			}
			return err
		}
		done += len(batch)
	}
	return nil
}
