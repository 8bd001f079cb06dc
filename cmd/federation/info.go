package main

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
)

// info is what the controllers say of how the federation is set up.
func (o *controllersOptions) info() v1beta1.Info {
	return v1beta1.Info{
		Name: o.name, DNSZone: o.zone, DNSTTL: o.dnsTTL,
		FailoverMaxZones: o.failover.settings.MaxZones, FailoverWindow: o.failover.settings.Window,
		CrossClusterEndpoints: o.endpoints, ClusterSetIPRanges: strings.Join(o.clusterSetIPs, ","),
	}
}

// publishInfo writes the info where tools and reviews find it: one write at the start. It tries until it succeeds
// or ctx ends.
func publishInfo(ctx context.Context, client kubernetes.Interface, info v1beta1.Info) {
	maps := client.CoreV1().ConfigMaps(v1beta1.FederationNamespace)
	want := applycorev1.ConfigMap(v1beta1.InfoConfigMap, v1beta1.FederationNamespace).WithData(info.ConfigMapData())
	_ = wait.PollUntilContextCancel(ctx, 2*time.Second, true, func(ctx context.Context) (bool, error) { // ends with ctx only
		_, err := maps.Apply(ctx, want, metav1.ApplyOptions{FieldManager: "federation-controllers", Force: true})
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "How the federation is set up could not be written down; will be tried again",
				"configMap", klog.KObj(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: v1beta1.FederationNamespace, Name: v1beta1.InfoConfigMap}}))
		}
		return err == nil, nil
	})
}
