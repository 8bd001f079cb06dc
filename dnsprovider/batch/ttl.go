package batch

import (
	"sync"

	"federation/dnsprovider"
)

// asked remembers which TTLs were requested where a service has larger ones, so that a caller that reads the zone finds
// what it wrote. After a restart it finds the larger ones once; what it then writes changes nothing in the service.
type asked struct {
	mu sync.Mutex
	// ttl is in seconds, by the set's key.
	ttl map[string]uint32
}

func setKey(set dnsprovider.RRSet) string { return set.Name + " " + string(set.Type) }

// raiseTTLs returns the changes with no TTL below least. Those that are none then are left out.
func raiseTTLs(changes dnsprovider.ChangeSet, least uint32) dnsprovider.ChangeSet {
	if least == 0 {
		return changes
	}
	var before, after []dnsprovider.RRSet
	for _, step := range changes {
		before, after = append(before, step.Old...), append(after, step.New...)
	}
	for _, sets := range [][]dnsprovider.RRSet{before, after} {
		for i := range sets {
			sets[i].TTL = max(sets[i].TTL, least)
		}
	}
	return dnsprovider.Diff(before, after)
}

// rememberTTLs records the requested TTLs below least.
func (a *asked) rememberTTLs(changes dnsprovider.ChangeSet, least uint32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, step := range changes {
		for _, set := range step.Old {
			delete(a.ttl, setKey(set))
		}
		for _, set := range step.New {
			if set.TTL >= least {
				continue
			}
			if a.ttl == nil {
				a.ttl = map[string]uint32{}
			}
			a.ttl[setKey(set)] = set.TTL
		}
	}
}

// restoreTTLs replaces the least TTL in sets by the requested one.
func (a *asked) restoreTTLs(sets []dnsprovider.RRSet, least uint32) []dnsprovider.RRSet {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, set := range sets {
		if ttl, ok := a.ttl[setKey(set)]; ok && set.TTL == least {
			sets[i].TTL = ttl
		}
	}
	return sets
}
