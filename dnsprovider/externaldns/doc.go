// Package externaldns has record sets in the form of external-dns, which its webhook protocol and its
// DNSEndpoint objects share. It is a pure room.
//
// external-dns itself is not imported: it brings all its providers along. What is here was made from
// its API (externaldns.k8s.io/v1alpha1), of which only what record sets need is read and written; the
// rest, labels and what is specific to a provider, is kept as it came.
package externaldns
