// Package manifests holds what is installed into clusters, as YAML: for `kubectl apply`, and for programs that install it.
package manifests

import _ "embed"

// NodeAgent installs the node agent in a member cluster: a Namespace, an account with its rights, and a DaemonSet.
//
//go:embed nodeagent.yaml
var NodeAgent []byte

// Agent installs the agent of a cluster whose connection is Pull, once CLUSTER, ACCOUNT and IMAGE have been replaced.
//
//go:embed agent.yaml
var Agent []byte

// NodeAgentBlackhole lets drills have the node agent drop what comes from outside: a Lease, and the agent's right to see it.
//
//go:embed nodeagent-blackhole.yaml
var NodeAgentBlackhole []byte

// LoadBalancerProvider has the rights of the load balancer providers of a cluster.
//
//go:embed lb-provider.yaml
var LoadBalancerProvider []byte
