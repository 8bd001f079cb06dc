package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Keep says to which namespace a host belongs: that of the object that had it first. It is written down, so that no restart, no older
// object that comes to want the host, and no moment without addresses gives the host to another namespace.
type Keep struct {
	Namespace string
	// Until is how long it belongs to the namespace though no object there wants it any more; zero: one does.
	Until time.Time
}

const (
	// HoldDown is how long a host stays with its namespace after the last object there that wanted it.
	HoldDown = time.Hour
	// maxKeptOfOne bounds how many hosts belong to one namespace, maxKept how many bytes all take: a ConfigMap has a megabyte. Of others
	// the oldest object that wants them has them.
	maxKeptOfOne, maxKept = 1000, 800_000
)

func (k Keep) until() string {
	if k.Until.IsZero() {
		return ""
	}
	return ", until " + k.Until.UTC().Format(time.RFC3339)
}

// String is how it is written down.
func (k Keep) String() string {
	if k.Until.IsZero() {
		return k.Namespace
	}
	return k.Namespace + " " + k.Until.UTC().Format(time.RFC3339)
}

// ParseKept reads what is written down: the data of the ConfigMap v1beta1.DNSHostsConfigMap. What cannot be read belongs to nobody.
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

// Settle returns what to write down now: by the names of ConfigMap keys, nil for what to take away; nothing, where all is as it is to be.
// Until that is read back, hosts are whose they were.
func (c *Claims) Settle(now time.Time) map[string]*string {
	next := map[string]Keep{}
	for name, k := range c.kept {
		if _, belongs := c.keep(name); !belongs {
			continue
		}
		wanted := c.owner(name) != ""
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
			next[name] = Keep{Namespace: namespaceOf(c.first(name))}
		}
	}
	bound(next)
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

// first returns the oldest object that wants a host, in whatever namespace.
func (c *Claims) first(name string) string {
	free := Claims{claims: c.claims, grants: c.grants}
	return free.owner(name)
}

// bound takes out what is too much: of each namespace, and of all, first what nobody wants, by when it ends, and then the last names.
func bound(kept map[string]Keep) {
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
