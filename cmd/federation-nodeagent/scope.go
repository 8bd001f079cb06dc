package main

import "github.com/spf13/pflag"

// Values of --scope.
const (
	scopeAll       = "all"
	scopeFederated = "federated"
)

// defaultsBesideProxy sets flags that nobody set to what a node with another service proxy needs: ports that are not kube-proxy's,
// and no changes of the table of connections.
func defaultsBesideProxy(f *pflag.FlagSet) {
	for flag, value := range map[string]string{
		"metrics-bind-address": "127.0.0.1:10349", "healthz-bind-address": "0.0.0.0:10356",
		"conntrack-max-per-core": "0", "conntrack-tcp-timeout-established": "0", "conntrack-tcp-timeout-close-wait": "0",
	} {
		if !f.Changed(flag) {
			_ = f.Set(flag, value) // these values are valid
		}
	}
}
