// Package etcd stores the federation's objects: in an etcd inside this process, or in an external etcd cluster.
//
// The embedded one listens only on a Unix socket, so that nothing on the network, and no other user of the machine, reaches it.
// Before it starts, the data directory is locked (a second process would wait for ever, and take the socket from the first)
// and the database is read through (etcd would end the process with a stack trace on a damaged one).
package etcd
