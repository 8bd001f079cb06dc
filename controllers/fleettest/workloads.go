package fleettest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

var (
	replicaSets    = appsv1.SchemeGroupVersion.WithResource("replicasets")
	deployments    = appsv1.SchemeGroupVersion.WithResource("deployments")
	statefulSets   = appsv1.SchemeGroupVersion.WithResource("statefulsets")
	jobs           = batchv1.SchemeGroupVersion.WithResource("jobs")
	services       = corev1.SchemeGroupVersion.WithResource("services")
	endpointSlices = discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
	configMaps     = corev1.SchemeGroupVersion.WithResource("configmaps")
	namespaces     = corev1.SchemeGroupVersion.WithResource("namespaces")
)

// workload is a kind that has pods.
type workload struct {
	resource schema.GroupVersionResource
	wanted   func(*unstructured.Unstructured, *Member) int
	status   func(*unstructured.Unstructured, counts) map[string]any
}

var workloads = []workload{
	{replicaSets, number("replicas"), replicaSetStatus},
	{deployments, number("replicas"), deploymentStatus},
	{statefulSets, number("replicas"), statefulSetStatus},
	{appsv1.SchemeGroupVersion.WithResource("daemonsets"), func(_ *unstructured.Unstructured, m *Member) int { return m.Nodes }, daemonSetStatus},
	{jobs, jobPods, jobStatus},
}

// number reads the number of pods from a field of the spec; 1 where it is not given.
func number(field string) func(*unstructured.Unstructured, *Member) int {
	return func(u *unstructured.Unstructured, _ *Member) int {
		n, found, _ := unstructured.NestedInt64(u.Object, "spec", field)
		if !found {
			return 1
		}
		return int(n)
	}
}

// templateOf returns what the pods of a workload are to be. Each version of it is read once.
func (p *pods) templateOf(u *unstructured.Unstructured) string {
	if p.of != u {
		template, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "template")
		text, _ := json.Marshal(template)
		p.of, p.template = u, string(text)
	}
	return p.template
}

func replicaSetStatus(u *unstructured.Unstructured, c counts) map[string]any {
	return map[string]any{
		"observedGeneration": u.GetGeneration(), "replicas": int64(c.all), "fullyLabeledReplicas": int64(c.all),
		"readyReplicas": int64(c.ready), "availableReplicas": int64(c.ready), "conditions": c.failure(nil),
	}
}

// failure adds the condition that pods cannot be made, as the controllers of ReplicaSets and Deployments do.
func (c counts) failure(conditions []any) any {
	if !c.refused.IsZero() {
		conditions = append(conditions, map[string]any{
			"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota",
			"lastTransitionTime": c.refused.UTC().Format(time.RFC3339),
		})
	}
	if conditions == nil {
		return nil
	}
	return conditions
}

func deploymentStatus(u *unstructured.Unstructured, c counts) map[string]any {
	wanted := number("replicas")(u, nil)
	available := "False"
	if c.ready >= wanted {
		available = "True"
	}
	return map[string]any{
		"observedGeneration": u.GetGeneration(), "replicas": int64(c.all), "updatedReplicas": int64(c.updated),
		"readyReplicas": int64(c.ready), "availableReplicas": int64(c.ready), "unavailableReplicas": int64(max(0, wanted-c.ready)),
		"conditions": c.failure([]any{map[string]any{"type": "Available", "status": available}, map[string]any{"type": "Progressing", "status": "True"}}),
	}
}

func statefulSetStatus(u *unstructured.Unstructured, c counts) map[string]any {
	return map[string]any{
		"observedGeneration": u.GetGeneration(), "replicas": int64(c.all), "currentReplicas": int64(c.updated), "updatedReplicas": int64(c.updated),
		"readyReplicas": int64(c.ready), "availableReplicas": int64(c.ready),
	}
}

func daemonSetStatus(u *unstructured.Unstructured, c counts) map[string]any {
	return map[string]any{
		"observedGeneration": u.GetGeneration(), "desiredNumberScheduled": int64(c.all), "currentNumberScheduled": int64(c.all),
		"updatedNumberScheduled": int64(c.updated), "numberReady": int64(c.ready), "numberAvailable": int64(c.ready),
	}
}

// jobEnd is an annotation with which a script ends a Job in a member: Complete or Failed.
const jobEnd = "end"

func jobPods(u *unstructured.Unstructured, m *Member) int {
	if u.GetAnnotations()[jobEnd] != "" {
		return 0
	}
	return number("parallelism")(u, m)
}

func jobStatus(u *unstructured.Unstructured, c counts) map[string]any {
	status := map[string]any{"active": int64(c.all), "ready": int64(c.ready)}
	if end := u.GetAnnotations()[jobEnd]; end != "" {
		at := u.GetCreationTimestamp().UTC().Format(time.RFC3339)
		status["startTime"], status["completionTime"] = at, at
		if n, counted, _ := unstructured.NestedInt64(u.Object, "spec", "completions"); counted && end == "Complete" {
			status["succeeded"] = n
		}
		status["conditions"] = []any{map[string]any{"type": end, "status": "True"}}
	}
	return status
}

// services gives those that want one a load balancer address, and each its endpoints.
func (m *Member) services(now time.Time) {
	for _, u := range m.API.List(services, nil) {
		if kind, _, _ := unstructured.NestedString(u.Object, "spec", "type"); kind == string(corev1.ServiceTypeLoadBalancer) {
			list, _, _ := unstructured.NestedSlice(u.Object, "status", "loadBalancer", "ingress")
			if len(list) == 0 {
				ip := m.loadBalancers.newAddress()
				address := map[string]any{"ip": ip}
				m.writeStatus(services, u, map[string]any{"loadBalancer": map[string]any{"ingress": []any{address}}})
			}
		}
		m.endpoints(u, now)
	}
	for _, slice := range m.API.List(endpointSlices, nil) {
		of := slice.GetLabels()[discoveryv1.LabelServiceName] // those of other clusters have owners
		if of != "" && m.API.Get(services, slice.GetNamespace(), of) == nil {
			_ = m.kubelet.Resource(endpointSlices).Namespace(slice.GetNamespace()).Delete(context.Background(), slice.GetName(), metav1.DeleteOptions{})
		}
	}
}

// newAddress is one that no other member gives.
func (l *loadBalancers) newAddress() string {
	l.given++
	ip := fmt.Sprintf("192.0.2.%d", 10*l.cluster+l.given)
	if l.given > 9 {
		ip = fmt.Sprintf("10.%d.%d.%d", l.cluster, l.given/256, l.given%256)
	}
	l.addresses[ip] = true
	return ip
}

// endpoints keeps one slice for a Service, with one endpoint that is ready while any of its pods is.
func (m *Member) endpoints(service *unstructured.Unstructured, now time.Time) {
	slice := &unstructured.Unstructured{Object: map[string]any{
		"addressType": "IPv4", "ports": m.targetPorts(service), "endpoints": []any{map[string]any{"addresses": []any{m.podAddress()}, "conditions": map[string]any{"ready": m.serves(service, now)}}},
	}}
	slice.SetAPIVersion("discovery.k8s.io/v1")
	slice.SetKind("EndpointSlice")
	slice.SetName(service.GetName() + "-1")
	slice.SetNamespace(service.GetNamespace())
	marks := map[string]string{discoveryv1.LabelServiceName: service.GetName()}
	for key, value := range service.GetLabels() {
		marks[key] = value
	}
	slice.SetLabels(marks)
	if is := m.API.Get(endpointSlices, slice.GetNamespace(), slice.GetName()); is != nil && is.GetDeletionTimestamp() == nil &&
		maps.Equal(is.GetLabels(), marks) && reflect.DeepEqual(is.Object["endpoints"], slice.Object["endpoints"]) {
		return // to apply it would cost much, and change nothing
	}
	// It fails only for a Service that ends with its namespace.
	_, _ = m.kubelet.Resource(endpointSlices).Namespace(service.GetNamespace()).Apply(context.Background(), slice.GetName(), slice, metav1.ApplyOptions{FieldManager: "endpointslices", Force: true})
}

// podAddress is that of all pods.
func (m *Member) podAddress() string { return fmt.Sprintf("172.16.%d.1", m.index) }

// targetPorts are the ports of a Service's pods: 8000 higher than its own.
func (m *Member) targetPorts(service *unstructured.Unstructured) (ports []any) {
	list, _, _ := unstructured.NestedSlice(service.Object, "spec", "ports")
	for _, item := range list {
		p := item.(map[string]any)
		name, _ := p["name"].(string)
		number, _, _ := unstructured.NestedInt64(p, "port")
		ports = append(ports, map[string]any{"name": name, "protocol": "TCP", "port": 8000 + number})
	}
	return ports
}

// serves reports whether a ready pod bears what a Service selects.
func (m *Member) serves(service *unstructured.Unstructured, now time.Time) bool {
	selector, _, _ := unstructured.NestedStringMap(service.Object, "spec", "selector")
	if len(selector) == 0 {
		return false
	}
	for _, w := range workloads {
		for k := range m.pods.sets {
			if k.resource != w.resource.Resource || k.namespace != service.GetNamespace() || m.Ready(k, now) == 0 {
				continue
			}
			u := m.API.Get(w.resource, k.namespace, k.name)
			if u == nil {
				continue // it has just been deleted, and its pods go at the next step
			}
			marks, _, _ := unstructured.NestedStringMap(u.Object, "spec", "template", "metadata", "labels")
			if labels.SelectorFromSet(selector).Matches(labels.Set(marks)) {
				return true
			}
		}
	}
	return false
}

// patchStatus merges what differs into the status of an object.
func patchStatus(c dynamic.Interface, gvr schema.GroupVersionResource, u *unstructured.Unstructured, status map[string]any) {
	current, _ := u.Object["status"].(map[string]any)
	for key, value := range status {
		if reflect.DeepEqual(current[key], value) {
			delete(status, key)
		}
	}
	if len(status) == 0 {
		return
	}
	body, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		panic(err) // it is made of strings and numbers
	}
	var r dynamic.ResourceInterface = c.Resource(gvr)
	if u.GetNamespace() != "" {
		r = c.Resource(gvr).Namespace(u.GetNamespace())
	}
	_, _ = r.Patch(context.Background(), u.GetName(), types.MergePatchType, body, metav1.PatchOptions{}, "status") // it may be gone by now
}
