package split

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"federation/dnsprovider"
)

// Result is the outcome of changes.
type Result struct {
	// Refused are the changes that the provider does not take, by the name that they are about, with why.
	Refused map[string]Refusal
	// Left are changes that were not tried, because too many were refused before; sorted.
	Left dnsprovider.ChangeSet
}

// Refusal is a refused change of one name.
type Refusal struct {
	Changes dnsprovider.ChangeSet
	Err     error
}

// About returns the name that a record is about: a mark of ownership belongs to the name that it marks.
func About(name string) string { return strings.TrimPrefix(name, dnsprovider.MarkPrefix) }

// Apply makes all changes except those that the provider refuses, of which it finds at most `most`. It fails on any
// other error: then some of the changes may be made, and the result has what was refused until then.
func Apply(ctx context.Context, p dnsprovider.Provider, zone string, changes dnsprovider.ChangeSet, most int) (Result, error) {
	s := splitter{provider: p, zone: zone, most: most, result: Result{Refused: map[string]Refusal{}}}
	err := s.apply(ctx, changes)
	slices.SortFunc(s.result.Left, byName)
	return s.result, err
}

type splitter struct {
	provider dnsprovider.Provider
	zone     string
	most     int
	result   Result
}

func (s *splitter) apply(ctx context.Context, changes dnsprovider.ChangeSet) error {
	for {
		err := s.provider.Apply(ctx, s.zone, changes)
		var refused *dnsprovider.RefusedError
		if !errors.As(err, &refused) || ctx.Err() != nil {
			return err
		}
		var partial *dnsprovider.PartialError
		if errors.As(err, &partial) {
			changes = changes[min(partial.Done, len(changes)):]
		}
		names := unitsOf(changes)
		switch {
		case len(names) == 0:
			return err
		case len(s.result.Refused) >= s.most:
			s.result.Left = append(s.result.Left, changes...)
			return nil
		case len(names) == 1:
			s.result.Refused[About(changes[0].Name)] = Refusal{Changes: changes, Err: err}
			return nil
		}
		half := len(names) / 2
		if err := s.apply(ctx, joinUnits(names[:half])); err != nil {
			return err
		}
		changes = joinUnits(names[half:])
	}
}

// unitsOf divides changes into those about one name each.
func unitsOf(changes dnsprovider.ChangeSet) (units []dnsprovider.ChangeSet) {
	at := map[string]int{}
	for _, step := range changes {
		i, known := at[About(step.Name)]
		if !known {
			i = len(units)
			at[About(step.Name)] = i
			units = append(units, nil)
		}
		units[i] = append(units[i], step)
	}
	return units
}

func joinUnits(units []dnsprovider.ChangeSet) dnsprovider.ChangeSet {
	all := slices.Concat(units...)
	slices.SortFunc(all, byName)
	return all
}

func byName(a, b dnsprovider.Step) int { return cmp.Compare(a.Name, b.Name) }
