// Package resourceversion orders the states of an object by number. Clients may compare the resource versions of one
// resource (KEP-5504); those of apimachinery's util/resourceversion are texts, and what has none is an error there.
package resourceversion

import "strconv"

// Of is the resource version of an object as a number; 0, which is before all, where it has none.
func Of(o interface{ GetResourceVersion() string }) uint64 { return Parse(o.GetResourceVersion()) }

// Parse reads a resource version as Of does.
func Parse(version string) uint64 {
	n, _ := strconv.ParseUint(version, 10, 64)
	return n
}
