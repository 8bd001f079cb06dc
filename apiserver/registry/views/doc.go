// Package views serves, read-only, what members have: their pods and nodes, as if they were one cluster's. Nothing is stored and nothing is
// cached: members are asked when the federation is asked.
//
//	POD.CLUSTER   is the name of a pod of a member, NODE.CLUSTER that of a node: cluster names have no dots
//	a member      that does not answer within 2 s is a warning to the client, never an error, and never a longer wait
//	a list        has a version, a decimal number that stands for the versions of all members for five minutes
//
// Members are not trusted: what each sends is bounded, and what is none of what was asked for is left out.
package views
