package batch

import "federation/dnsprovider"

// divideSteps makes batches of steps whose sizes sum up to most at most. Steps stay whole and in order.
// It fails when one step alone is larger than that.
func divideSteps(changes dnsprovider.ChangeSet, most int, size func(dnsprovider.Step) int) ([]dnsprovider.ChangeSet, error) {
	var batches []dnsprovider.ChangeSet
	start, filled := 0, 0
	for i, step := range changes {
		n := size(step)
		if n > most {
			return nil, dnsprovider.Refusef("name %s: its change has the size %d, and at most %d are taken at once", step.Name, n, most)
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

// applyEach hands one batch after the other to apply. It stops at the first error, which is a dnsprovider.PartialError
// when batches were made before it.
func applyEach(batches []dnsprovider.ChangeSet, apply func(dnsprovider.ChangeSet) error) error {
	done, all := 0, 0
	for _, batch := range batches {
		all += len(batch)
	}
	for _, batch := range batches {
		if err := apply(batch); err != nil {
			if done > 0 {
				err = &dnsprovider.PartialError{Done: done, Of: all, Err: err}
			}
			return err
		}
		done += len(batch)
	}
	return nil
}
