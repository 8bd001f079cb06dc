// Package mcs tests the Multi-Cluster Services API between clusters with real nodes, clause by clause, as SIG Multicluster's conformance suite
// has them. hack/e2e-mcs.sh starts the clusters and runs it: MEMBERS are their names, and contexts of those names in KUBECONFIG.
package mcs
