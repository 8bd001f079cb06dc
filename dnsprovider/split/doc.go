// Package split applies changes to a provider so that one that it refuses costs no other:
//
//	result, err := split.Apply(ctx, provider, zone, changes, 64)
//
// A provider makes all changes or none. Where it says that it refuses them (dnsprovider.RefusedError), it is given the halves,
// and so on: a culprit among n names is found by some 2·log2(n) calls. Without one it is one call, as before.
package split
