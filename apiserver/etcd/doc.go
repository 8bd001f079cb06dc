// Package etcd is the edge to where the federation's objects are kept: an etcd inside this process, or
// an external etcd cluster.
//
// The embedded one listens on a Unix socket only, so that nothing on the network, and no other user
// of the machine, reaches it. Before it starts, the data directory is locked (a second process would
// wait for ever, and take the socket away from the first) and the database is read through (etcd would
// end the process with a stack trace on a damaged one).
package etcd
