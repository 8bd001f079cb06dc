package v1beta1

const (
	// AgentsGroup is the group of the agents of clusters whose connection is Pull.
	AgentsGroup = "system:federation:cluster-agents"
	// agentUserPrefix begins the names of these agents; what follows is the name of the Cluster.
	agentUserPrefix = "system:federation:cluster-agent:"
	// ConnectSubresource is where they connect.
	ConnectSubresource = "connect"
)

// AgentUserName returns the user name of a cluster's agent.
func AgentUserName(cluster string) string { return agentUserPrefix + cluster }

// IsPull reports whether requests to the cluster go through its agent.
func (c *Cluster) IsPull() bool { return c.Spec.Connection == ConnectionPull }
