package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/version"
	"k8s.io/utils/clock"
	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodelease "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/controllers"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	kwokclient "sigs.k8s.io/kwok/pkg/utils/client"
)

// A node has room for a little fewer pods than its network has addresses: kwok goes on counting beyond
// the network's end, into the next node's.
const (
	nodeCIDRBits = 22
	podsPerNode  = 1000
)

// registerNodes makes the nodes that are not there yet. Nodes beyond the wanted number stay.
func (c *cluster) registerNodes(ctx context.Context, kube kubernetes.Interface) error {
	for i := 1; i <= c.Nodes; i++ {
		_, err := kube.CoreV1().Nodes().Create(ctx, c.node(i), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// node is the i-th node as a kubelet would register it, from 1 on. A real one says for itself what it has.
func (c *cluster) node(i int) *corev1.Node {
	name := c.nodeName(i)
	labels := map[string]string{
		corev1.LabelHostname:       name,
		corev1.LabelOSStable:       "linux",
		corev1.LabelArchStable:     "amd64",
		corev1.LabelTopologyRegion: c.Region,
		corev1.LabelTopologyZone:   c.Zone,
	}
	if c.Real.on() {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
			Spec:       corev1.NodeSpec{PodCIDR: c.podsOf(i).String(), PodCIDRs: []string{c.podsOf(i).String()}},
		}
	}
	room := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("1k"),
		corev1.ResourceMemory:           resource.MustParse("1Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		corev1.ResourcePods:             *resource.NewQuantity(podsPerNode, resource.DecimalSI),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status: corev1.NodeStatus{
			Capacity:    room,
			Allocatable: room,
			NodeInfo:    corev1.NodeSystemInfo{KubeletVersion: version.Get().GitVersion},
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.64.0.%d", i)},
				{Type: corev1.NodeHostName, Address: name},
			},
		},
	}
}

func (c *cluster) nodeName(i int) string { return fmt.Sprintf("%s-node-%d", c.Name, i) }

// missingImage is an image that no simulated kubelet can pull.
const missingImage = "missing"

// stages are what the simulated kubelets do, as kwok ships it: a node becomes ready and renews its
// lease; a pod runs and is ready at once, completes if it is a job's, and goes when it is deleted.
//
// Only a pending pod is made ready, so the status that somebody writes into a running pod stays. A pod with missingImage stays pending.
func stages() (map[internalversion.StageResourceRef][]*internalversion.Stage, error) {
	byKind := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, text := range []string{
		nodefast.DefaultNodeInit, nodelease.DefaultNodeHeartbeatWithLease,
		podfast.DefaultPodReady, podfast.DefaultPodComplete, podfast.DefaultPodDelete,
	} {
		stage, err := config.UnmarshalWithType[*internalversion.Stage](text)
		if err != nil {
			return nil, err
		}
		if text == podfast.DefaultPodReady {
			stage.Spec.Selector.MatchExpressions = append(stage.Spec.Selector.MatchExpressions, internalversion.MatchExpression{
				JQ: &internalversion.SelectorJQ{Key: ".spec.containers.[].image", Operator: internalversion.SelectorOpNotIn, Values: []string{missingImage}},
			})
		}
		byKind[stage.Spec.ResourceRef] = append(byKind[stage.Spec.ResourceRef], stage)
	}
	return byKind, nil
}

// startKubelets starts kwok, which plays the kubelets of all nodes until ctx ends.
func (c *cluster) startKubelets(ctx context.Context) error {
	ctx = kwoklog.NewContext(ctx, kwoklog.NewLogger(os.Stderr, kwoklog.LevelWarn))
	conf, err := c.kwokConfig(ctx)
	if err != nil {
		return fmt.Errorf("kwok: %w", err)
	}
	controller, err := kwok.NewController(*conf)
	if err != nil {
		return fmt.Errorf("kwok: %w", err)
	}
	if err := controller.Start(ctx); err != nil {
		return fmt.Errorf("kwok: %w", err)
	}
	return nil
}

func (c *cluster) kwokConfig(ctx context.Context) (*kwok.Config, error) {
	clients, err := kwokclient.NewClientset("", c.Kubeconfig)
	if err != nil {
		return nil, err
	}
	conf := &kwok.Config{
		Clock:                      clock.RealClock{},
		ImpersonatingDynamicClient: clients.ToImpersonatingDynamicClient(),
		ImpersonatingTypedClient:   clients.ToImpersonatingTypedClient(),
		ManageAllNodes:             true,
		CIDR:                       c.PodCIDR,
		NodeIP:                     "10.64.0.1",
		NodeName:                   c.Name,
		PodPlayStageParallelism:    16,
		NodePlayStageParallelism:   4,
		NodeLeaseDurationSeconds:   40,
		NodeLeaseParallelism:       4,
		PodsOnNodeSyncParallelism:  4,
		ID:                         c.Name,
	}
	if conf.LocalStages, err = stages(); err != nil {
		return nil, err
	}
	if conf.RESTMapper, err = clients.ToRESTMapper(); err != nil {
		return nil, err
	}
	if conf.DynamicClient, err = clients.ToDynamicClient(); err != nil {
		return nil, err
	}
	restConfig, err := clients.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	if conf.TypedClient, err = kubernetes.NewForConfig(restConfig); err != nil {
		return nil, err
	}
	conf.RESTClient, err = rest.RESTClientFor(restConfig)
	return conf, err
}
