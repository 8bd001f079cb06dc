// Package views serves, read-only, the members' pods and nodes, as if they were one cluster's. Nothing is stored and nothing is
// cached: each request asks the members.
//
//	POD.CLUSTER   is the name of a pod of a member, NODE.CLUSTER that of a node: cluster names have no dots
//	a member      that does not answer within 2 s is a warning to the client, never an error, and never a longer wait
//	a list        has a version, a decimal number that stands for the versions of all members for five minutes
//
// Members are not trusted: responses are bounded, and objects that were not asked for are dropped. Lists of pods are copied as members write them where
// nothing in them can be read in two ways (package canonical), else decoded and encoded again.
package views
