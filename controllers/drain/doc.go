// Package drain empties clusters that spec.drain asks to be drained, and brings them back when it is removed (ADR 135). plan.Next decides
// each step from the Cluster, the federation's caches, and what the cluster itself says of its copies: unknown is not empty.
//
// It runs in the leader. A cluster that does not answer holds up its own drain only.
package drain
