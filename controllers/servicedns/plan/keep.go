package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Keep says which namespace owns a host: that of the first object to claim it. It is stored, so that no restart, no
// older object that claims the host later, and no moment without addresses gives the host to another namespace.
type Keep struct {
	Namespace string
	// Until is how long the namespace keeps the host without a claim; zero while there is one.
	Until time.Time
}

const (
	// HoldDown is how long a namespace keeps a host after its last claim.
	HoldDown = time.Hour
	// maxKeptOfOne bounds how many hosts one namespace owns, maxKept the bytes of all: a ConfigMap holds a megabyte.
	// Hosts beyond that go to the oldest object that claims them.
	maxKeptOfOne, maxKept = 1000, 800_000
)

func (k Keep) until() string {
	if k.Until.IsZero() {
		return ""
	}
	return ", until " + k.Until.UTC().Format(time.RFC3339)
}

// String returns the stored form.
func (k Keep) String() string {
	if k.Until.IsZero() {
		return k.Namespace
	}
	return k.Namespace + " " + k.Until.UTC().Format(time.RFC3339)
}

// ParseKept parses the data of the ConfigMap v1beta1.DNSHostsConfigMap. A host with an invalid value belongs to nobody.
func ParseKept(data map[string]string) map[string]Keep {
	kept := make(map[string]Keep, len(data))
	for name, text := range data {
		namespace, until, dated := strings.Cut(text, " ")
		k := Keep{Namespace: namespace}
		if dated {
			var err error
			if k.Until, err = time.Parse(time.RFC3339, until); err != nil {
				continue
			}
		}
		if namespace != "" {
			kept[name+"."] = k
		}
	}
	return kept
}

// Settle returns the changes to write: by ConfigMap key, nil to delete; empty if there are none. Owners do not change
// until the change is read back.
func (c *Claims) Settle(now time.Time) map[string]*string {
	next := map[string]Keep{}
	for name, k := range c.kept {
		if _, belongs := c.keptOwner(name); !belongs {
			continue
		}
		wanted := c.ownerOf(name) != ""
		switch {
		case wanted:
			k.Until = time.Time{}
		case k.Until.IsZero():
			k.Until = now.Add(HoldDown)
		case !now.Before(k.Until):
			continue
		}
		next[name] = k
	}
	for name := range c.claims {
		if _, kept := next[name]; !kept {
			next[name] = Keep{Namespace: namespaceOf(c.oldestClaim(name))}
		}
	}
	enforceLimits(next)
	changes := map[string]*string{}
	for name, k := range next {
		if before, is := c.kept[name]; !is || !before.Until.Equal(k.Until) || before.Namespace != k.Namespace {
			changes[strings.TrimSuffix(name, ".")] = new(k.String())
		}
	}
	for name := range c.kept {
		if _, still := next[name]; !still {
			changes[strings.TrimSuffix(name, ".")] = nil
		}
	}
	return changes
}

// oldestClaim returns the oldest object that claims a host, in any namespace.
func (c *Claims) oldestClaim(name string) string {
	free := Claims{claims: c.claims, grants: c.grants}
	return free.ownerOf(name)
}

// enforceLimits removes what exceeds the limits, per namespace and in total: first hosts without a claim, by expiry, then the
// last names.
func enforceLimits(kept map[string]Keep) {
	size, of := 0, map[string]int{}
	for _, name := range slices.SortedFunc(maps.Keys(kept), func(a, b string) int {
		x, y := kept[a].Until, kept[b].Until
		if x.IsZero() != y.IsZero() {
			return map[bool]int{true: -1, false: 1}[x.IsZero()]
		}
		return cmp.Or(y.Compare(x), cmp.Compare(a, b))
	}) {
		k := kept[name]
		if size += len(name) + len(k.String()) + len(`"":"",`); size > maxKept || of[k.Namespace] >= maxKeptOfOne {
			delete(kept, name)
		}
		of[k.Namespace]++
	}
}
