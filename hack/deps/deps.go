//go:build deps

// Package deps is compiled into nothing. It keeps in go.mod the modules of which we build
// whole programs (kubectl, kube-proxy) or which only build tags reach.
package deps

import (
	_ "k8s.io/kubectl/pkg/cmd"
	_ "k8s.io/kubernetes/cmd/kube-proxy/app"
)
