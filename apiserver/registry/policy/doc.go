// Package policy stores PlacementPolicies, and keeps an Index of them by namespace for admission, which has to
// know, for each new object, whether a policy is going to say where it goes.
//
// The Index is written by the store's own hooks as well as by a watch: who makes a policy and then an object,
// through one server, finds the policy in force. What another server stored a moment ago may be missed; the
// object is then placed a moment after it was made.
package policy
