package clustersetip

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/resourceversion"
	"federation/controllers/clustersetip/plan"
)

const (
	fieldManager = "federation-clusterset-ip"
	// manager is the value of networkingv1.LabelManagedBy on our IPAddresses.
	manager = fieldManager
)

// holderKey returns the key of the Service of one of our IPAddresses; "" if it is not ours.
func holderKey(u *unstructured.Unstructured) string {
	ref, _, _ := unstructured.NestedStringMap(u.Object, "spec", "parentRef")
	if u.GetLabels()[networkingv1.LabelManagedBy] != manager || ref["resource"] != services.Resource {
		return ""
	}
	return ref["namespace"] + "/" + ref["name"]
}

// createAddress creates the IPAddress for a Service. It succeeds if the Service has it already, which the cache may not show
// yet.
func (c *Controller) createAddress(ctx context.Context, a netip.Addr, s *corev1.Service) error {
	family := "IPv6"
	if a.Is4() {
		family = "IPv4"
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": networkingv1.SchemeGroupVersion.String(), "kind": "IPAddress",
		"metadata": map[string]any{"name": a.String(), "labels": map[string]any{networkingv1.LabelManagedBy: manager, networkingv1.LabelIPAddressFamily: family}},
		"spec":     map[string]any{"parentRef": map[string]any{"resource": services.Resource, "namespace": s.Namespace, "name": s.Name}},
	}}
	_, err := c.Client.Resource(ipAddresses).Create(ctx, u, metav1.CreateOptions{FieldManager: fieldManager})
	if err == nil {
		c.written[a] = claimed{holderKey(u), time.Now().Add(catchUp)}
	}
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	there, err := c.Client.Resource(ipAddresses).Get(ctx, a.String(), metav1.GetOptions{})
	if err == nil && holderKey(there) != holderKey(u) {
		err = fmt.Errorf("%s has been taken meanwhile: Service %s/%s gets another address", a, s.Namespace, s.Name)
	}
	return err
}

// writeAnnotation writes the annotation of a Service at its observed version, so that an annotation removed meanwhile does not
// come back.
func (c *Controller) writeAnnotation(ctx context.Context, s *corev1.Service, value string) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": s.UID, "resourceVersion": s.ResourceVersion, "annotations": map[string]string{v1beta1.ClusterSetIPAnnotation: value},
	}})
	if err != nil {
		return err
	}
	got, err := c.Client.Resource(services).Namespace(s.Namespace).Patch(ctx, s.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: fieldManager})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // the watch brings what came in between, and triggers the next pass
	}
	c.recordWrite(got, err)
	return err
}

// recordWrite records a Service as our write left it, before the watch brings it.
func (c *Controller) recordWrite(got *unstructured.Unstructured, err error) {
	if err != nil {
		return
	}
	key := got.GetNamespace() + "/" + got.GetName()
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := decodeService(got); s != nil && c.asking[key].Service != nil && resourceversion.Of(c.asking[key]) < resourceversion.Of(s) {
		c.asking[key] = asked{s, resourceversion.LeftAt(resourceversion.Of(s))}
	}
}

// deleteAddress deletes the IPAddress of an address that its Service no longer needs. The Service must be gone, not only
// terminating, because its copies have the address until then. The cache may be stale, so it reads the Service itself.
func (c *Controller) deleteAddress(ctx context.Context, a netip.Addr, key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	u, err := c.Client.Resource(services).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if err == nil && slices.Contains(strings.Split(u.GetAnnotations()[v1beta1.ClusterSetIPAnnotation], ","), a.String()) {
		return fmt.Errorf("%s: the cache has not seen yet that Service %s has it", a, key)
	}
	address, err := c.Client.Resource(ipAddresses).Get(ctx, a.String(), metav1.GetOptions{})
	if err == nil && holderKey(address) == key {
		uid := address.GetUID()
		err = c.Client.Resource(ipAddresses).Delete(ctx, a.String(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// writeCondition writes the condition about a Service's addresses, and emits an event when it changes.
func (c *Controller) writeCondition(ctx context.Context, s *corev1.Service, faults []plan.Fault) error {
	key, is := s.Namespace+"/"+s.Name, conditionOf(s)
	var reason string
	var texts []string
	for _, f := range faults {
		reason = f.Reason
		texts = append(texts, f.Message)
	}
	text := strings.Join(texts, "; ")
	if text != c.told[key] && text != "" {
		c.Recorder.Event(s, corev1.EventTypeWarning, "ClusterSetIP"+reason, text)
	}
	c.told[key] = text
	switch {
	case text == "" && is == nil, is != nil && is.Message == text && is.Reason == reason, s.DeletionTimestamp != nil:
		return nil
	}
	status := &corev1.ServiceStatus{}
	if text != "" {
		if is != nil {
			status.Conditions = []metav1.Condition{*is}
		}
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: v1beta1.ConditionClusterSetIP, Status: metav1.ConditionFalse, Reason: reason, Message: text})
	}
	return c.applyStatus(ctx, s, status)
}

// applyStatus applies our part of a Service's status, and nothing else.
func (c *Controller) applyStatus(ctx context.Context, s *corev1.Service, status *corev1.ServiceStatus) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return err
	}
	delete(content, "loadBalancer") // it has no omitempty, and is not ours
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service", "status": content}}
	u.SetName(s.Name)
	u.SetNamespace(s.Namespace)
	u.SetUID(s.UID)
	got, err := c.Client.Resource(services).Namespace(s.Namespace).ApplyStatus(ctx, s.Name, u, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // gone or replaced
	}
	c.recordWrite(got, err)
	return err
}

func conditionOf(s *corev1.Service) *metav1.Condition {
	return meta.FindStatusCondition(s.Status.Conditions, v1beta1.ConditionClusterSetIP)
}
