// Package endpoint writes records as DNSEndpoint objects (externaldns.k8s.io/v1alpha1) into a cluster, where an external-dns
// with --source=crd publishes them.
//
//	provider, err := endpoint.New(endpoint.Options{Client: client, Namespace: "external-dns", Name: "federation", Zone: "example.com"})
//
// The permissions that it needs: list, create, update and delete of dnsendpoints in the namespace. The objects are Name-0,
// Name-1 and so on, with a label of ours; all others are left alone. Each has at most 500 endpoints, so that it stays below
// what the definition (1,000) and etcd allow. A name stays in its object, with all of its types: so a Step is one write. Writes
// are conditional by the object's version; a change by somebody else in between is a conflict. Changes in several objects are
// several writes, of which some may be made and others not.
//
// When Apply returns, the objects are there, and no more is known: external-dns, its --interval and --events, the service
// behind it, and what else it owns decide when and whether the names are published. It marks what it has made in TXT records,
// and touches nothing that others made.
//
// This is the one provider that uses a Kubernetes client, because its server is a Kubernetes API.
//
// What was tested: everything against a real API server, the federation's own, with a definition of DNSEndpoint that has the
// same fields and limits as external-dns's. external-dns was not run.
package endpoint
