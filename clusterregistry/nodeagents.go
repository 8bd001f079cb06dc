package clusterregistry

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// NodeAgents counts the ready nodes of a cluster, and those of them whose node agent is ready and was told by which Lease it is to drop what comes from
// outside: it does not start where it could not.
func (r *Registry) NodeAgents(ctx context.Context, cluster string) (nodes, able int, err error) {
	m, err := r.Member(cluster)
	if err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.options.Timeout)
	defer cancel()
	all, err := m.Core.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return 0, 0, err
	}
	pods, err := m.Core.CoreV1().Pods(v1beta1.FederationNamespace).List(ctx, metav1.ListOptions{ResourceVersion: "0", LabelSelector: "app=" + v1beta1.NodeAgentName})
	if err != nil {
		return 0, 0, err
	}
	nodes, able = countAgents(all.Items, pods.Items)
	return nodes, able, nil
}

func countAgents(nodes []corev1.Node, pods []corev1.Pod) (ready, able int) {
	serves := map[string]bool{}
	for i := range pods {
		if p := &pods[i]; p.DeletionTimestamp == nil && isTrue(p.Status.Conditions, corev1.PodReady) && blackholes(&p.Spec) {
			serves[p.Spec.NodeName] = true
		}
	}
	for i := range nodes {
		n := &nodes[i]
		if !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}) {
			continue
		}
		if ready++; serves[n.Name] {
			able++
		}
	}
	return ready, able
}

func isTrue(conditions []corev1.PodCondition, kind corev1.PodConditionType) bool {
	return slices.ContainsFunc(conditions, func(c corev1.PodCondition) bool { return c.Type == kind && c.Status == corev1.ConditionTrue })
}

// blackholes reports whether an agent was told by which Lease it is to drop what comes from outside.
func blackholes(pod *corev1.PodSpec) bool {
	return slices.ContainsFunc(pod.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Args, func(arg string) bool { return strings.HasPrefix(arg, v1beta1.BlackholeFlag+"=") })
	})
}
