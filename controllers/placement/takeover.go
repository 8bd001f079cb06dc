package placement

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/scheduler"
)

// takeOver has the workload of an autoscaler that is about to leave the clusters ask for the replicas that they have made. It reports
// whether it does, and these are placed.
func (c *Controller) takeOver(ctx context.Context, k key, cached *unstructured.Unstructured) (ready bool, err error) {
	resource, name, ok := scaledWorkload(cached)
	if !ok {
		return true, nil // nothing that clusters divide
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	autoscaler, err := c.Client.Resource(k.resource).Namespace(k.Namespace).Get(ctx, k.Name, metav1.GetOptions{}) // its maximum may have been raised for this
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	workloads := c.Client.Resource(resource).Namespace(k.Namespace)
	workload, err := workloads.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	replicas, ready := scheduler.TakeOver(autoscaler, workload)
	if asked, _, _ := unstructured.NestedInt64(workload.Object, "spec", "replicas"); ready || asked == replicas {
		return ready, nil
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": workload.GetResourceVersion()}, "spec": map[string]any{"replicas": replicas}})
	if err != nil {
		return false, err
	}
	_, err = workloads.Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "federation-placement"}, "scale")
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("scale %s %s/%s to the %d replicas that clusters have: %w", resource.Resource, k.Namespace, name, replicas, err)
	}
	return false, nil
}

// scaledWorkload returns the divided workload that an autoscaler scales, if it is one.
func scaledWorkload(autoscaler *unstructured.Unstructured) (resource schema.GroupVersionResource, name string, ok bool) {
	target, _, _ := unstructured.NestedStringMap(autoscaler.Object, "spec", "scaleTargetRef")
	kind := schema.FromAPIVersionAndKind(target["apiVersion"], target["kind"])
	for _, k := range v1beta1.FederatedKinds {
		if k.Replicas == "replicas" && k.Kind == kind.Kind && k.Resource.Group == kind.Group {
			return k.Resource, target["name"], true
		}
	}
	return resource, "", false
}
