// Package services is Kubernetes' own end-to-end tests of networking, without the rest of its tests, which would take
// minutes more to build. hack/e2e-dataplane.sh runs those of Services against a member with real nodes, once for each
// thing that makes Services work there. It is compiled with the build tag services only.
package services
