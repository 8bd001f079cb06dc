// Package plan decides which Service has which clusterset IP. It is pure: Decide makes of the Services that ask and the addresses
// that are held, by whom, what is to be claimed, written and released.
//
// An address is a Service's when an IPAddress object of that name says so: to claim it is to create that object, which only one can.
// What a Service says in its annotation is made true where it can be: an address that nobody holds is claimed for it, one that
// another holds is replaced. An address that its holder does not say, and does not ask for, is a leak, and is released.
//
// Where to look first for a free address follows from the Service's name: who is deleted and made again most likely gets the same
// ones, and two Services that ask at once hardly ever try the same.
package plan
