package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Fate is what happens to the copies of a deleted federated object.
type Fate string

const (
	// Deleted: its copies are deleted.
	Deleted Fate = "Deleted"
	// Orphaned: its copies stay, without our marks.
	Orphaned Fate = "Orphaned"
)

// Deletion is the record of an object's deletion: a value in a ConfigMap, whose key is the UID of the object.
type Deletion struct {
	Fate Fate
	// At is when the object was deleted, to the second.
	At time.Time
	// Object is its kind, namespace and name, for messages.
	Object string
}

// String returns the record as it is stored.
func (d Deletion) String() string {
	return d.At.UTC().Format(time.RFC3339) + " " + string(d.Fate) + " " + d.Object
}

// ParseDeletion parses a record; false if it is none.
func ParseDeletion(value string) (d Deletion, ok bool) {
	at, rest, _ := strings.Cut(value, " ")
	fate, object, _ := strings.Cut(rest, " ")
	d = Deletion{Fate: Fate(fate), Object: object}
	var err error
	d.At, err = time.Parse(time.RFC3339, at)
	return d, err == nil && (d.Fate == Deleted || d.Fate == Orphaned)
}

// How long records are kept, and how many of each fate: 1,300 of them with the longest names stay below the limit of a
// ConfigMap.
const (
	KeepOrphaned = 30 * 24 * time.Hour
	MostOrphaned = 1000
	MostDeleted  = 300
)

// Expired returns the keys of the records that are no longer needed. While members are away, all records are: they may
// hold a copy however old its record is. Once all are back, those of deleted objects are dealt with, but a member may
// still be restored from a backup with a copy that was orphaned since.
func Expired(records map[string]string, away bool, now time.Time) (keys []string) {
	kept := map[Fate][]string{}
	at := map[string]time.Time{}
	for key, value := range records {
		d, ok := ParseDeletion(value)
		switch {
		case !ok: // somebody else's
		case !away && (d.Fate == Deleted || now.Sub(d.At) > KeepOrphaned):
			keys = append(keys, key)
		default:
			kept[d.Fate], at[key] = append(kept[d.Fate], key), d.At
		}
	}
	for fate, most := range map[Fate]int{Deleted: MostDeleted, Orphaned: MostOrphaned} {
		slices.SortFunc(kept[fate], func(a, b string) int { return cmp.Or(at[a].Compare(at[b]), strings.Compare(a, b)) })
		keys = append(keys, kept[fate][:max(0, len(kept[fate])-most)]...)
	}
	slices.Sort(keys)
	return keys
}
