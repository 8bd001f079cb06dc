// Package plan decides what a load balancer provider of one cluster does for its Services of type LoadBalancer: values in, values and
// reasons out.
//
//	Settings.Serves    which Services are ours: those of our class; those without a class if we are the default
//	Settings.Allocate  which addresses they get
//	Members            which nodes connections to them go to
//	Ports              what the kernel does with packets to their addresses
//
// The status of a Service is the record of its addresses: nothing else is stored, and a new process goes on where the last one ended.
package plan
