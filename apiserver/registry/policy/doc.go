// Package policy stores PlacementPolicies, and keeps an Index of them by namespace for admission, which has to know, for each
// new object, whether a policy will decide where it goes.
//
// The store's own hooks write the Index as well as a watch: a client that creates a policy and then an object, through one
// server, finds the policy in force. What another server stored a moment ago may be missed; the object is then placed a moment
// after its creation.
package policy
