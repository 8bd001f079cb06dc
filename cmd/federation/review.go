package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
	review "federation/controllers/review/plan"
)

// reviewer answers FailoverReviews in the apiserver's process. It reads all that it needs from the API, so that it
// answers the same wherever the controllers run. An answer costs a list of every object that can move.
type reviewer struct {
	config atomic.Pointer[rest.Config]
}

// use gives the reviewer the way to the API, once there is one.
func (r *reviewer) use(config *rest.Config) { r.config.Store(config) }

// ReviewFailover fills in the status of a review.
func (r *reviewer) ReviewFailover(ctx context.Context, asked *v1beta1.FailoverReview) error {
	config := r.config.Load()
	if config == nil {
		return apierrors.NewServiceUnavailable("the federation is starting: ask again in a moment")
	}
	config = rest.CopyConfig(config)
	config.QPS = -1
	in, err := readReviewInput(ctx, config)
	if err != nil {
		return err
	}
	status, errs := review.Review(in, asked.Spec)
	if len(errs) > 0 {
		return apierrors.NewInvalid(v1beta1.SchemeGroupVersion.WithKind("FailoverReview").GroupKind(), asked.Name, errs)
	}
	asked.Status = status
	return nil
}

// namedResources are what has names in DNS.
var namedResources = []schema.GroupVersionResource{corev1.SchemeGroupVersion.WithResource("services"), networkingv1.SchemeGroupVersion.WithResource("ingresses")}

func readReviewInput(ctx context.Context, config *rest.Config) (in review.Input, err error) {
	client, err := newClient(config)
	if err != nil {
		return in, err
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return in, err
	}
	in.Now = time.Now()
	if in.Info, err = readInfo(ctx, core); err != nil {
		return in, err
	}
	if in.Clusters, err = readAll[v1beta1.Cluster](ctx, client, v1beta1.ClustersResource); err != nil {
		return in, err
	}
	if in.Policies, err = readAll[v1beta1.PlacementPolicy](ctx, client, v1beta1.SchemeGroupVersion.WithResource("placementpolicies")); err != nil {
		return in, err
	}
	for _, k := range v1beta1.FederatedKinds {
		if k.Preferences == "" {
			continue
		}
		if err := eachObject(ctx, client, k.Resource, adding(in.AddObject)); err != nil {
			return in, err
		}
	}
	for _, r := range namedResources {
		if err := eachObject(ctx, client, r, adding(in.AddNamed)); err != nil {
			return in, err
		}
	}
	return in, nil
}

func readInfo(ctx context.Context, core kubernetes.Interface) (*v1beta1.Info, error) {
	m, err := core.CoreV1().ConfigMaps(v1beta1.FederationNamespace).Get(ctx, v1beta1.InfoConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	info, err := v1beta1.ParseInfo(m.Data)
	if err != nil {
		return nil, err
	}
	return &info, nil
}

// readAll reads all objects of one of our own kinds.
func readAll[T any](ctx context.Context, client dynamic.Interface, r schema.GroupVersionResource) (all []*T, err error) {
	err = eachObject(ctx, client, r, func(u *unstructured.Unstructured) error {
		one := new(T)
		all = append(all, one)
		return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, one)
	})
	return all, err
}

// adding is a function that cannot fail as one that could.
func adding(add func(*unstructured.Unstructured)) func(*unstructured.Unstructured) error {
	return func(u *unstructured.Unstructured) error { add(u); return nil }
}

// eachObject calls do with every object of a resource, page by page.
func eachObject(ctx context.Context, client dynamic.Interface, r schema.GroupVersionResource, do func(*unstructured.Unstructured) error) error {
	o := metav1.ListOptions{Limit: 500, LabelSelector: v1beta1.NotRevisions}
	for {
		page, err := client.Resource(r).List(ctx, o)
		if err != nil {
			return fmt.Errorf("reading %s: %w", r.Resource, err)
		}
		for i := range page.Items {
			if err := do(&page.Items[i]); err != nil {
				return fmt.Errorf("reading %s %s/%s: %w", r.Resource, page.Items[i].GetNamespace(), page.Items[i].GetName(), err)
			}
		}
		if o.Continue = page.GetContinue(); o.Continue == "" {
			return nil
		}
	}
}
