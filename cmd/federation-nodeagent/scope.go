package main

import "github.com/spf13/pflag"

// What --scope may be.
const (
	scopeAll       = "all"
	scopeFederated = "federated"
)

// beside gives flags that nobody set what they need to be on a node that another service proxy serves: ports that are
// not kube-proxy's, and nothing of the table of connections.
func beside(f *pflag.FlagSet) {
	for flag, value := range map[string]string{
		"metrics-bind-address": "127.0.0.1:10349", "healthz-bind-address": "0.0.0.0:10356",
		"conntrack-max-per-core": "0", "conntrack-tcp-timeout-established": "0", "conntrack-tcp-timeout-close-wait": "0",
	} {
		if !f.Changed(flag) {
			_ = f.Set(flag, value) // the values are such as the flags take
		}
	}
}
