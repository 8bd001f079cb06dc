// Package plan decides which Service has which clusterset IP. It is pure: from the Services that ask and the held addresses,
// Decide returns what to claim, write and release.
//
// A Service owns an address if an IPAddress object of that name says so: to claim it is to create that object, which only one
// can. An annotated address is honoured if possible: if nobody holds it, it is claimed; if another Service holds it, it is
// replaced. An address that its holder does not annotate and does not ask for is a leak, and is released.
//
// The search for a free address starts at a hash of the Service's name: a Service that is deleted and created again most
// likely gets the same address, and two that ask at once hardly ever try the same.
package plan
