// Package resourceversion orders the states of an object by number. Clients may compare the resource versions of one
// resource (KEP-5504); those of apimachinery's util/resourceversion are texts, and what has none is an error there.
package resourceversion

import (
	"strconv"
	"time"
)

// Of is the resource version of an object as a number; 0, which is before all, where it has none.
func Of(o interface{ GetResourceVersion() string }) uint64 { return Parse(o.GetResourceVersion()) }

// Parse reads a resource version as Of does.
func Parse(version string) uint64 {
	n, _ := strconv.ParseUint(version, 10, 64)
	return n
}

// Believed is how long an informer may take to bring what a write left. After that it is believed: the store may have been put back to a backup,
// and then its versions begin again below those that are known.
const Believed = 30 * time.Second

// Left is the version that a write of ours left.
type Left struct {
	version uint64
	until   time.Time
}

// LeftAt notes a version that has just been written.
func LeftAt(version uint64) Left { return Left{version, time.Now().Add(Believed)} }

// Unseen reports whether an object, as an informer has it, is as it was before the write.
func (l Left) Unseen(o interface{ GetResourceVersion() string }) bool {
	return Of(o) < l.version && time.Now().Before(l.until)
}

// Is reports whether the object is as the write left it, and was waited for until it came: whoever has stopped waiting has believed an older one since.
func (l Left) Is(o interface{ GetResourceVersion() string }) bool {
	return l.version != 0 && Of(o) == l.version && time.Now().Before(l.until)
}
