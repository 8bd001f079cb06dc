// Package federationinfo writes into ConfigMaps what the processes of a federation say of themselves: the settings that tools and
// reviews read, and components that failed.
package federationinfo

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
)

// UID waits for the federation's UID: that of its namespace kube-system.
func UID(ctx context.Context, client kubernetes.Interface) (uid string, err error) {
	err = wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		ns, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if err != nil {
			klog.FromContext(ctx).Info("Waits for the federation's API: its namespace kube-system cannot be read", "err", err)
			return false, nil
		}
		uid = string(ns.UID)
		return true, nil
	})
	return uid, err
}

// Claim makes sure that this process serves the names that the federation has had so far: with others, all names of all
// Services would change, and of two processes the one that leads would decide which. It tries until it knows, or ctx ends.
func Claim(ctx context.Context, client kubernetes.Interface, ours v1beta1.Info) error {
	maps := client.CoreV1().ConfigMaps(v1beta1.FederationNamespace)
	var refused error
	err := wait.PollUntilContextCancel(ctx, 2*time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.InfoConfigMap}, Data: ours.ConfigMapData()},
			metav1.CreateOptions{FieldManager: "federation-controllers"})
		if !apierrors.IsAlreadyExists(err) {
			return err == nil, nil
		}
		there, err := maps.Get(ctx, v1beta1.InfoConfigMap, metav1.GetOptions{})
		if err != nil {
			return false, nil
		}
		refused = otherName(there.Data, ours)
		return true, nil
	})
	return errors.Join(err, refused)
}

// otherName returns an error that names the flag where a federation that is there has another name or zone than ours.
func otherName(there map[string]string, ours v1beta1.Info) error {
	for _, f := range []struct{ flag, key, ours string }{{"--name", "name", ours.Name}, {"--dns-zone", "dnsZone", ours.DNSZone}} {
		if was := there[f.key]; was != "" && was != f.ours {
			return fmt.Errorf("%s %q: must be %q, as this federation has been served so far; to change the DNS names of all Services, end all its processes but an apiserver, and delete the ConfigMap %s/%s",
				f.flag, f.ours, was, v1beta1.FederationNamespace, v1beta1.InfoConfigMap)
		}
	}
	return nil
}

// Publish writes the info where tools and reviews find it: one write at the start. It tries until it succeeds
// or ctx ends.
func Publish(ctx context.Context, client kubernetes.Interface, info v1beta1.Info) {
	maps := client.CoreV1().ConfigMaps(v1beta1.FederationNamespace)
	want := applycorev1.ConfigMap(v1beta1.InfoConfigMap, v1beta1.FederationNamespace).WithData(info.ConfigMapData())
	_ = wait.PollUntilContextCancel(ctx, 2*time.Second, true, func(ctx context.Context) (bool, error) { // ends with ctx only
		_, err := maps.Apply(ctx, want, metav1.ApplyOptions{FieldManager: "federation-controllers", Force: true})
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Failed to update the federation's settings, will retry",
				"configMap", klog.KObj(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: v1beta1.FederationNamespace, Name: v1beta1.InfoConfigMap}}))
		}
		return err == nil, nil
	})
}
