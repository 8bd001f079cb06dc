package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// gate holds pods back: they are made and counted, but nobody schedules or runs them.
const gate = "bench.example.test/held"

func objectName(i int) string { return fmt.Sprintf("web-%05d", i) }

func replicaSet(name string, replicas int32) *appsv1.ReplicaSet {
	labels := map[string]string{"app": name}
	return &appsv1.ReplicaSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers:      []corev1.Container{{Name: "web", Image: "web:1"}},
					SchedulingGates: []corev1.PodSchedulingGate{{Name: gate}},
				},
			},
		},
	}
}

// connect returns an unthrottled client that reads protobuf, which costs the least.
func connect(kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.AcceptContentTypes, config.ContentType = "application/vnd.kubernetes.protobuf,application/json", "application/vnd.kubernetes.protobuf"
	return kubernetes.NewForConfig(config)
}

func makeNamespace(ctx context.Context, ns string, apis ...kubernetes.Interface) error {
	for _, api := range apis {
		if _, err := api.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// waitNamespace waits until pods can be made in a namespace of all members.
func waitNamespace(ctx context.Context, ns string, members map[string]kubernetes.Interface) error {
	for _, m := range members {
		if err := until(ctx, func() bool {
			_, err := m.CoreV1().ServiceAccounts(ns).Get(ctx, "default", metav1.GetOptions{})
			return err == nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// removeNamespace deletes a namespace from the APIs in which it was made, and waits for it to be gone there
// and in all members.
func removeNamespace(ctx context.Context, ns string, members map[string]kubernetes.Interface, apis ...kubernetes.Interface) error {
	policy := metav1.DeletePropagationBackground // as kubectl does: without it a federated object leaves its copies
	for _, api := range apis {
		if err := api.CoreV1().Namespaces().Delete(ctx, ns, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
			return err
		}
	}
	for _, m := range members {
		apis = append(apis, m)
	}
	for _, api := range apis {
		if err := until(ctx, func() bool {
			_, err := api.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		}); err != nil {
			return fmt.Errorf("namespace %s stays: %w", ns, err)
		}
	}
	return nil
}

// until asks again and again until done says yes or ctx ends.
func until(ctx context.Context, done func() bool) error {
	for !done() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}
