// Benchdataplane measures federation-nodeagent beside kube-proxy: the same Services from the same kube-apiserver, on the
// same node, one after the other, in each mode.
//
//	make bench-dataplane
//
// The node and its pods are network namespaces (nodeagent/nettest). All endpoints are addresses of two pods: one accepts
// connections, the other refuses them, so that a single connect() tells which of the two a Service leads to. Services of
// which an endpoint is swapped have one endpoint, for the same reason. The API server is a member cluster's (hack/local),
// which the node reaches through a forwarder in this program. Latency counts from when a watch in this program has seen
// the change: what the API server takes is the same for all and not in it.
package main
