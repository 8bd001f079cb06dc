// Package explain reads, with a user's own rights, what plan explains: an object with its copies in members, what clusters are told of a
// Service, how load balancers serve an Ingress, and what names follow from. What the user may not read is left out and said; a member
// that does not answer holds up nobody.
package explain
