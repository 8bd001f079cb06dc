// Package servertest tests the real apiserver, with the real etcd inside, through a real client. All tests share one
// server; those of starting and stopping start their own.
package servertest
