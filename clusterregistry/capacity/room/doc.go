// Package room sums up the nodes and pods of a cluster into the room that it has.
//
//	capacity := room.Summarize(nodes, pods, room.Settings{Unschedulable: time.Minute}, time.Now())
//
// What is free is given by classes of nodes, for a pod must fit on one node: 100 free cpus on 100 nodes take no
// pod of 2. Nodes are divided into classes where the least of a class tells least of the others, until there are 16, or
// nothing is lost. So the size is bounded, the sum is never more than what is there, and equal nodes cost nothing.
//
// What was traded: affinities, topology and ports are not looked at. A pod that cannot go where there is room by
// these numbers shows that itself, by being unschedulable. The package is pure.
package room
