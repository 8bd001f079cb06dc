package capacity

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/component-helpers/resource"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/capacity/room"
	"federation/clusterregistry/limits"
)

// node and pod are what the caches hold. Of the metadata only what caches need is there.
type node struct {
	metav1.ObjectMeta
	room.Node
}

type pod struct {
	metav1.ObjectMeta
	room.Pod
}

func identityOf(m *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion}
}

// meteredTransform is transform, and counts what is kept.
func meteredTransform(meter *limits.Meter) func(any) (any, error) {
	return func(obj any) (any, error) {
		kept, err := transform(obj)
		if kept == obj {
			return kept, err // it was kept, and counted, before
		}
		switch o := kept.(type) {
		case *node:
			limits.Hold(meter, o, len(o.ResourceVersion)+64*len(o.Allocatable))
		case *pod:
			limits.Hold(meter, o, len(o.ResourceVersion)+len(o.Message)+64*len(o.Requests))
		}
		return kept, err
	}
}

// transform is the transform of both informers.
func transform(obj any) (any, error) {
	switch o := obj.(type) {
	case *corev1.Node:
		return &node{identityOf(&o.ObjectMeta), room.Node{Name: o.Name, Allocatable: room.AmountsOf(o.Status.Allocatable), Usable: room.UsableNode(o)}}, nil
	case *corev1.Pod:
		p := &pod{ObjectMeta: identityOf(&o.ObjectMeta), Pod: room.Pod{Node: o.Spec.NodeName}}
		p.Requests = room.AmountsOf(resource.PodRequests(o, resource.PodResourcesOptions{}))
		if p.Node == "" {
			p.noteUnscheduled(o)
		}
		return p, nil
	case *node, *pod:
		return o, nil
	default:
		return nil, fmt.Errorf("a %T in place of a node or a pod", obj)
	}
}

// noteUnscheduled notes of a pod that is on no node since when there is no room for it, and whose it is. A member whose clock is ahead
// says a time that is yet to come: there, what counts is when we were told.
func (p *pod) noteUnscheduled(o *corev1.Pod) {
	for _, c := range o.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable && o.DeletionTimestamp == nil {
			if p.Unschedulable = c.LastTransitionTime.Time; p.Unschedulable.After(time.Now()) {
				p.Unschedulable = time.Now()
			}
			p.Workload = workload(o)
			p.Message = room.BoundMessage(c.Message)
		}
	}
}

// workload is what made a pod: its controller or, for a ReplicaSet that a Deployment made, the Deployment.
func workload(o *corev1.Pod) room.Workload {
	owner := metav1.GetControllerOf(o)
	if owner == nil {
		return room.Workload{}
	}
	w := room.Workload{Kind: owner.Kind, Namespace: o.Namespace, Name: owner.Name}
	if len(validation.IsDNS1123Subdomain(w.Name)) > 0 || len(validation.IsDNS1123Label(w.Namespace)) > 0 {
		return room.Workload{} // a member may say anything
	}
	hash := o.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	if name, ok := strings.CutSuffix(owner.Name, "-"+hash); ok && hash != "" && owner.Kind == "ReplicaSet" {
		w.Kind, w.Name = "Deployment", name
	}
	if !slices.ContainsFunc(v1beta1.FederatedKinds, func(k v1beta1.FederatedKind) bool { return k.Kind == w.Kind && k.Preferences != "" }) {
		return room.Workload{}
	}
	return w
}

// sameState reports whether two states of a node or a pod are the same for us.
func sameState(a, b any) bool {
	switch x := a.(type) {
	case *node:
		y, ok := b.(*node)
		return ok && x.Usable == y.Usable && maps.Equal(x.Allocatable, y.Allocatable)
	case *pod:
		y, ok := b.(*pod)
		return ok && x.Node == y.Node && x.Unschedulable.Equal(y.Unschedulable) && x.Workload == y.Workload && x.Message == y.Message && maps.Equal(x.Requests, y.Requests)
	}
	return false
}
