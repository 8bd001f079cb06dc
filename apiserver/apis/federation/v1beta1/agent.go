package v1beta1

import (
	"slices"
	"strings"
)

const (
	// AgentsGroup is the group of the agents of clusters whose connection is Pull.
	AgentsGroup = "system:federation:cluster-agents"
	// AgentSigner signs their certificates.
	AgentSigner = "federation.kubernetes.io/cluster-agent"
	// BootstrapGroups is the group of all bootstrap tokens of agents.
	BootstrapGroups = "system:bootstrappers:federation:cluster-agents"
	// ConnectSubresource is where they connect.
	ConnectSubresource = "connect"

	// agentUserPrefix begins the names of these agents; what follows is the name of the Cluster.
	agentUserPrefix = "system:federation:cluster-agent:"
	// bootstrapGroupPrefix begins the groups of bootstrap tokens that are for one cluster.
	bootstrapGroupPrefix = "system:bootstrappers:federation:cluster-agent:"
)

// AgentUserName returns the user name of a cluster's agent.
func AgentUserName(cluster string) string { return agentUserPrefix + cluster }

// ClusterOfAgent returns the cluster whose agent a user is, and whether it is one.
func ClusterOfAgent(user string) (cluster string, ok bool) {
	cluster, ok = strings.CutPrefix(user, agentUserPrefix)
	return cluster, ok && cluster != ""
}

// IsAgent reports whether groups of a user say that it is the agent of a cluster, or has a bootstrap token of one.
func IsAgent(groups []string) bool {
	return slices.Contains(groups, AgentsGroup) || slices.Contains(groups, BootstrapGroups)
}

// BootstrapGroup returns the group of the bootstrap tokens by which the agent of a cluster gets its first certificate.
func BootstrapGroup(cluster string) string { return bootstrapGroupPrefix + cluster }

// BootstrapSecretName returns the name of the Secret in kube-system that a bootstrap token is.
func BootstrapSecretName(tokenID string) string { return "bootstrap-token-" + tokenID }

// IsPull reports whether requests to the cluster go through its agent.
func (c *Cluster) IsPull() bool { return c.Spec.Connection == ConnectionPull }
