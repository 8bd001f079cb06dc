package housekeeping

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/pager"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
)

// retryClusterIPs is the delay before trying Services again that got no cluster IPs.
const retryClusterIPs = 10 * time.Second

// giveClusterIPs gives cluster IPs once to Services stored by versions before the federation gave any.
func (s *set) giveClusterIPs(ctx context.Context) {
	_ = wait.PollUntilContextCancel(ctx, retryClusterIPs, true, func(ctx context.Context) (done bool, err error) {
		if err := GiveClusterIPs(ctx, s.kube.CoreV1()); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Cannot give cluster IPs to Services of earlier versions; will retry")
			return false, nil
		}
		return true, nil
	}) // ends without an error, or with ctx
}

// GiveClusterIPs writes each federated Service that should have a cluster IP and has none, without a change: each write
// of a Service gives them.
func GiveClusterIPs(ctx context.Context, services corev1client.ServicesGetter) error {
	var errs []error
	list := pager.New(pager.SimplePageFunc(func(o metav1.ListOptions) (runtime.Object, error) { return services.Services("").List(ctx, o) }))
	err := list.EachListItem(ctx, metav1.ListOptions{}, func(obj runtime.Object) error {
		s, ok := obj.(*corev1.Service)
		if !ok || s.Spec.ClusterIP != "" || s.Spec.Type == corev1.ServiceTypeExternalName || !v1beta1.Federated(corev1.Resource("services"), s.Namespace, s.Name, "") {
			return nil
		}
		given := v1beta1.ServiceIPs{Namespace: s.Namespace, Name: s.Name, Annotations: s.Annotations, Families: s.Spec.IPFamilies, Policy: s.Spec.IPFamilyPolicy}
		if len(given.ClusterIPs()) == 0 {
			return nil
		}
		if _, err := services.Services(s.Namespace).Patch(ctx, s.Name, types.MergePatchType, []byte("{}"), metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
		return nil
	})
	return errors.Join(append(errs, err)...)
}
