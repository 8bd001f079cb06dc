// Package plan decides which pods count for an autoscaler that scales for all clusters together, and what each of them may report.
// Kubernetes' own algorithm works with what it returns.
//
// Members report pods and their usage, and a member may be dead, slow or hostile. So:
//
//   - A replica that is placed in a cluster and not seen there counts as a pod without metrics. Kubernetes takes it for one that uses
//     all that it requests before it scales down, and nothing before it scales up.
//   - A pod requests what the federation's template says, whatever the member made of it.
//   - Usage is at least 0, and at most what alone calls for the maximum of replicas.
//   - As many pods count as are placed. What others do that serve, such as those that are about to leave a cluster, is added to what one of
//     these does. Otherwise pods that do nothing, or do not exist, would lower the average.
//   - Of the metrics for which members are asked (asks.go), those of pods count alike. Values of an object or from outside become one of all
//     clusters: the sum, or the largest.
//
// Then a member can add to what its own pods are said to need, or withhold it. It cannot take from what others need.
package plan
