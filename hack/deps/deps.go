//go:build deps

// Package deps is compiled into nothing. It keeps in go.mod the modules of which we build
// whole programs (kubectl, kube-proxy, kubelet, Kubernetes' tests) or which only build tags reach.
package deps

import (
	_ "github.com/onsi/ginkgo/v2/ginkgo/command"
	_ "k8s.io/kubectl/pkg/cmd"
	_ "k8s.io/kubernetes/cmd/kube-proxy/app"
	_ "k8s.io/kubernetes/cmd/kubelet/app"
	_ "k8s.io/kubernetes/test/e2e/network"
	_ "k8s.io/kubernetes/test/images/agnhost/netexec"
)
