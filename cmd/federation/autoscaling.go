package main

import (
	"context"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"

	"federation/clusterregistry/wire"
	"federation/controllers/autoscaling"
	"federation/controllers/manager"
)

// autoscalers scale workloads for all clusters together. What members do not answer comes as warnings, which tell it nothing that the
// pods do not.
func (c *controllers) autoscalers(_ context.Context, from manager.Informers) (func(context.Context) error, error) {
	config := rest.CopyConfig(c.config)
	config.WarningHandler = rest.NoWarnings{}
	pods, err := kubernetes.NewForConfig(wire.Protobuf(config))
	if err != nil {
		return nil, err
	}
	metrics, err := metricsclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return autoscaling.New(autoscaling.Options{Kube: c.kube, Pods: pods, Metrics: metrics, Informers: from.ForResource, Recorder: c.recorder}).Run, nil
}
