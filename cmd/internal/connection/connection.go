// Package connection connects a program that runs beside the federation to it.
package connection

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/wire"
)

// New returns informers of the federation that the file of --kubeconfig leads to, without managed fields, and a client. Neither is
// throttled. It reads the file, and does no other I/O.
func New(kubeconfig string) (*wire.Informers, kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, nil, fmt.Errorf("--kubeconfig %q: %w", kubeconfig, err)
	}
	config.QPS = -1
	custom, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("--kubeconfig %q: %w", kubeconfig, err)
	}
	kube, err := kubernetes.NewForConfig(wire.Protobuf(config))
	if err != nil {
		return nil, nil, fmt.Errorf("--kubeconfig %q: %w", kubeconfig, err)
	}
	slim := func(o metav1.Object) { o.SetManagedFields(nil) }
	return wire.NewInformers(wire.Source{Kube: kube, Dynamic: custom, Slim: slim}), kube, nil
}

// WaitForInfo waits until the federation publishes its configuration. It fails when ctx ends.
func WaitForInfo(ctx context.Context, kube kubernetes.Interface) (info v1beta1.Info, err error) {
	err = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		found, err := kube.CoreV1().ConfigMaps(v1beta1.FederationNamespace).Get(ctx, v1beta1.InfoConfigMap, metav1.GetOptions{})
		if err == nil {
			info, err = v1beta1.ParseInfo(found.Data)
		}
		if err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Waiting for the federation to publish its configuration")
		}
		return err == nil, nil
	})
	return info, err
}
