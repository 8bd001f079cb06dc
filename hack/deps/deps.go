//go:build deps

// Package deps is compiled into nothing. It keeps in go.mod the modules of which we build
// whole programs (kubectl) or which only build tags reach.
package deps

import (
	_ "k8s.io/kubectl/pkg/cmd"
)
