// Package servertest starts the real apiserver, with the real etcd inside, for tests, and tests it through a real client. All its own tests
// share one server; those of starting and stopping start their own.
//
//	func TestMain(m *testing.M) { servertest.Main(m, func(ctx context.Context, r *servertest.Running) error { … }) } // of a controller's tests
package servertest
