// Package explain reads, with a user's own rights, what package plan explains: an object with its copies in members, the slices that clusters have
// of each other for a Service, how load balancers serve an Ingress, what names follow from, and how a federation stands. What the user may not
// read is left out and said; a member that does not answer holds up nobody.
package explain
