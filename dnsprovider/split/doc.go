// Package split applies changes to a provider so that a refused change does not block the others:
//
//	result, err := split.Apply(ctx, provider, zone, changes, 64)
//
// A provider makes all changes or none. If it refuses them (dnsprovider.RefusedError), split tries the halves, and so on: it
// finds a culprit among n names in some 2·log2(n) calls. Without a refusal it makes one call.
package split
