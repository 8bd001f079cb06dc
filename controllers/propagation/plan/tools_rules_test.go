package plan

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// What Argo CD says of an object.
const (
	argoHealthy     = "Healthy"
	argoProgressing = "Progressing"
	argoDegraded    = "Degraded"
)

func as[T any](u *unstructured.Unstructured) *T {
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		panic(err)
	}
	return out
}

func either(of bool, then string, otherwise string) string {
	if of {
		return then
	}
	return otherwise
}

// argoCD is what Argo CD's own rules make of an object, those that are built in (gitops-engine, pkg/health), written down from their meaning.
func argoCD(u *unstructured.Unstructured) string {
	switch u.GetKind() {
	case "Deployment":
		d := as[appsv1.Deployment](u)
		stuck := slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
			return c.Type == "Progressing" && c.Reason == "ProgressDeadlineExceeded"
		})
		waits := d.Generation > d.Status.ObservedGeneration || d.Spec.Replicas != nil && d.Status.UpdatedReplicas < *d.Spec.Replicas ||
			d.Status.Replicas > d.Status.UpdatedReplicas || d.Status.AvailableReplicas < d.Status.UpdatedReplicas
		return either(stuck && d.Generation <= d.Status.ObservedGeneration, argoDegraded, either(waits, argoProgressing, argoHealthy))
	case "StatefulSet":
		s := as[appsv1.StatefulSet](u)
		waits := s.Generation > s.Status.ObservedGeneration || s.Spec.Replicas != nil && s.Status.ReadyReplicas < *s.Spec.Replicas || s.Status.UpdateRevision != s.Status.CurrentRevision
		return either(waits, argoProgressing, argoHealthy)
	case "DaemonSet":
		d := as[appsv1.DaemonSet](u)
		waits := d.Generation > d.Status.ObservedGeneration || d.Status.UpdatedNumberScheduled < d.Status.DesiredNumberScheduled || d.Status.NumberAvailable < d.Status.DesiredNumberScheduled
		return either(waits, argoProgressing, argoHealthy)
	case "Job":
		for _, c := range as[batchv1.Job](u).Status.Conditions {
			if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
				return either(c.Type == batchv1.JobFailed, argoDegraded, argoHealthy)
			}
		}
		return argoProgressing
	case "Service":
		s := as[corev1.Service](u)
		return either(s.Spec.Type == corev1.ServiceTypeLoadBalancer && len(s.Status.LoadBalancer.Ingress) == 0, argoProgressing, argoHealthy)
	case "Ingress":
		return either(len(as[networkingv1.Ingress](u).Status.LoadBalancer.Ingress) == 0, argoProgressing, argoHealthy)
	case "HorizontalPodAutoscaler":
		for _, c := range as[autoscalingv2.HorizontalPodAutoscaler](u).Status.Conditions {
			switch {
			case slices.Contains([]string{"FailedGetScale", "FailedUpdateScale", "FailedGetResourceMetric", "InvalidSelector"}, c.Reason):
				return argoDegraded
			case c.Status == corev1.ConditionTrue && (c.Type == autoscalingv2.AbleToScale || c.Type == autoscalingv2.ScalingLimited):
				return argoHealthy
			}
		}
		return argoProgressing
	}
	return argoHealthy // it has no rule
}

// helm3 reports whether Helm 3 waits no longer for an object (pkg/kube, with --wait and --wait-for-jobs), as its rules mean it. The ReplicaSet that it
// looks at beside a Deployment is the newest revision's, whose pods are at most those that are updated.
func helm3(u *unstructured.Unstructured) bool {
	switch u.GetKind() {
	case "Deployment":
		d := as[appsv1.Deployment](u)
		return d.Status.ObservedGeneration == d.Generation && min(d.Status.UpdatedReplicas, d.Status.ReadyReplicas-(d.Status.Replicas-d.Status.UpdatedReplicas)) >= *d.Spec.Replicas
	case "StatefulSet":
		s := as[appsv1.StatefulSet](u)
		return s.Status.ObservedGeneration == s.Generation && s.Status.UpdatedReplicas >= *s.Spec.Replicas && s.Status.ReadyReplicas == *s.Spec.Replicas &&
			s.Status.CurrentRevision == s.Status.UpdateRevision
	case "DaemonSet":
		d := as[appsv1.DaemonSet](u)
		return d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedNumberScheduled == d.Status.DesiredNumberScheduled && d.Status.NumberReady >= d.Status.DesiredNumberScheduled
	case "Job":
		return strings.Contains(argoCD(u), argoHealthy)
	case "Service":
		s := as[corev1.Service](u)
		return s.Spec.ClusterIP != "" && argoCD(u) == argoHealthy
	}
	return true // it waits for no other kind
}
