// Package servertest tests the real apiserver, with the real etcd inside, through a real client. One
// server is started for all tests; those of starting and stopping start their own.
package servertest
