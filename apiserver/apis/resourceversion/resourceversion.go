// Package resourceversion orders the states of an object by number. Clients may compare the resource versions of one
// resource (KEP-5504); apimachinery's util/resourceversion compares texts, and returns an error if there is none.
package resourceversion

import (
	"strconv"
	"time"
)

// Of returns the resource version of an object as a number; 0, which is before all, if it has none.
func Of(o interface{ GetResourceVersion() string }) uint64 { return Parse(o.GetResourceVersion()) }

// Parse reads a resource version as Of does.
func Parse(version string) uint64 {
	n, _ := strconv.ParseUint(version, 10, 64)
	return n
}

// Believed is how long an informer may take to bring the result of a write. After that the informer wins: the store may
// have been restored from a backup, and then its versions begin again below the known ones.
const Believed = 30 * time.Second

// Left is the version that a write of ours left.
type Left struct {
	version uint64
	until   time.Time
}

// LeftAt records a version that has just been written.
func LeftAt(version uint64) Left { return Left{version, time.Now().Add(Believed)} }

// Awaited reports whether the informer may still be late with the write.
func (l Left) Awaited() bool { return time.Now().Before(l.until) }

// Unseen reports whether an object, as an informer has it, is older than the write.
func (l Left) Unseen(o interface{ GetResourceVersion() string }) bool {
	return Of(o) < l.version && l.Awaited()
}

// Is reports whether the object is as the write left it, and arrived in time: a caller that has stopped waiting has
// accepted an older one since.
func (l Left) Is(o interface{ GetResourceVersion() string }) bool {
	return l.version != 0 && Of(o) == l.version && l.Awaited()
}
