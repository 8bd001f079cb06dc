package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
	propagationplan "federation/controllers/propagation/plan"
)

// cluster is a cluster's part while it is being explained.
type cluster struct {
	v1beta1.ClusterExplanation
	// finished: the copy is a Job that has ended.
	finished bool
}

// Explain makes the explanation from the evidence. It is pure.
func Explain(e Evidence) *v1beta1.PlacementReviewStatus {
	o := e.Object
	d := replayDecision(e)
	x := &v1beta1.PlacementReviewStatus{
		Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), Generation: o.GetGeneration(),
		Deleting: o.GetDeletionTimestamp() != nil, Notes: d.notes, Policy: d.policyName(),
		Pending: isUndecided(o), Round: jobRoundOf(o), Clusters: []v1beta1.ClusterExplanation{},
	}
	if c := ConditionOf(o, v1beta1.ConditionPropagated); c != nil && c.Status != "True" {
		x.NotPropagated = c.problem()
	}
	p := v1beta1.ParsePlacement(o.GetAnnotations()[v1beta1.PlacementAnnotation])
	if p != nil {
		x.Unschedulable, x.Decisions = p.Unschedulable, p.History
		x.Notes = slices.Concat(p.Notes, x.Notes)
		slices.Sort(x.Notes)
		x.Notes = slices.Compact(x.Notes)
	}
	x.Notes = append(x.Notes, notScaling(e)...)
	specField, readyField := d.replicaFields(e.Resource)
	if specField != "" {
		n, found, _ := unstructured.NestedInt64(o.Object, "spec", specField)
		if !found {
			n = 1 // Kubernetes' default
		}
		x.Replicas = &n
	}
	says := v1beta1.ParseOutOfSync(o.GetAnnotations()[v1beta1.OutOfSyncAnnotation])
	for _, c := range e.Clusters {
		one := explainCluster(e, &d, p, c)
		one.setWaitReason(c, says.In(c.Name), specField != "", e.Now)
		x.Placed += one.Desired
		x.Ready += one.Ready
		x.Clusters = append(x.Clusters, one.ClusterExplanation)
	}
	if specField != "" && slices.ContainsFunc(x.Clusters, func(c v1beta1.ClusterExplanation) bool { return c.Copy == v1beta1.CopyUnreadable }) {
		setReadyWithoutCopies(x, o, readyField)
	}
	if e.Across != nil {
		x.CrossCluster = explainAcross(e, x.Clusters)
	}
	if e.Routes != nil {
		x.Routes = explainRoutes(e.Routes, e.Clusters)
	}
	x.Events = lastEvents(e.Events)
	if e.Confined {
		confine(x)
	}
	return x
}

// notScaling says of autoscalers at the federation, the object itself or those that target it, that they do not scale, and why.
func notScaling(e Evidence) (notes []string) {
	all := e.Autoscalers
	if e.Resource == AutoscalerKind.Resource {
		all = []*unstructured.Unstructured{e.Object}
	}
	for _, u := range all {
		for _, kind := range []autoscalingv2.HorizontalPodAutoscalerConditionType{autoscalingv2.AbleToScale, autoscalingv2.ScalingActive} {
			if c := ConditionOf(u, string(kind)); v1beta1.StaysAtFederation(u) && c != nil && c.Status == "False" {
				notes = append(notes, fmt.Sprintf("the HorizontalPodAutoscaler %s does not scale: %s is False (%s): %s", u.GetName(), kind, c.Reason, c.Message))
			}
		}
	}
	return notes
}

// setReadyWithoutCopies sets what the object's own status says. It leaves out a field that is 0.
func setReadyWithoutCopies(x *v1beta1.PlacementReviewStatus, o *unstructured.Unstructured, readyField string) {
	x.Ready, x.ReadyBy = 0, v1beta1.ReadyUnknown
	status, _, _ := unstructured.NestedMap(o.Object, "status")
	if delete(status, "conditions"); len(status) > 0 {
		x.Ready, _, _ = unstructured.NestedInt64(status, readyField)
		x.ReadyBy = v1beta1.ReadyByStatus
	}
}

// isUndecided reports whether it is yet to be decided where an object goes.
func isUndecided(o *unstructured.Unstructured) bool {
	return o.GetAnnotations()[v1beta1.PlacementAnnotation] == v1beta1.PlacementPending
}

func explainCluster(e Evidence, d *decision, p *v1beta1.Placement, c *v1beta1.Cluster) cluster {
	one := cluster{ClusterExplanation: v1beta1.ClusterExplanation{Name: c.Name, Phase: string(c.Phase()), Reasons: d.reasons[c.Name], Copy: v1beta1.CopyNone}}
	if p != nil {
		one.Desired, one.Overflow, one.Home = p.Clusters[c.Name], p.Overflow[c.Name], p.Home[c.Name]
		if p.Everywhere {
			one.Desired = 1
		}
		one.Since = sinceWhen(p.History, c.Name)
	} else if d.everywhere && !isUndecided(e.Object) && c.RefusesNamespace(e.Object.GetNamespace()) == "" && propagationplan.Selected(e.Object, c.Labels) {
		one.Desired = 1
	}
	if e.Object.GetDeletionTimestamp() != nil {
		one.Desired, one.Overflow = 0, 0
	}
	if len(one.Reasons) == 0 && p != nil {
		one.Reasons = d.defaultReason(one.Desired + one.Overflow)
	}
	one.setCopyState(e, d, c)
	one.setCompletions(e, c)
	return one
}

// setCopyState sets the state of the copy.
func (one *cluster) setCopyState(e Evidence, d *decision, c *v1beta1.Cluster) {
	answer, wanted := e.Copies[c.Name], one.Desired+one.Overflow
	if answer.Err != nil {
		if one.Copy = v1beta1.CopyUnreachable; c.IsReady() {
			one.Copy = v1beta1.CopyUnreadable
			one.wait(v1beta1.WaitsForAnswer, e.unreadableReason(answer.Err))
		}
		return
	}
	wish := e.desiredNow(c)
	if answer.Copy == nil {
		if wanted > 0 && wish.Presence != propagationplan.IfThere { // as for a finished Job
			one.Copy = v1beta1.CopyMissing
			one.wait(v1beta1.WaitsForPermission, wish.Refusal)
			if e.isDefinition() { // our permission to write it is not known here
				one.wait(v1beta1.WaitsForPermission, joinFor+e.Object.GetName())
			}
		}
		return
	}
	one.setNumbers(d, e.Resource, answer.Copy)
	specField, _ := d.replicaFields(e.Resource)
	taken := specField != "" && v1beta1.ScaledBy(answer.Copy) != ""
	scaled := taken || specField != "" && *one.Current > 0 && e.isAutoscaled(c)
	if scaled {
		one.Reasons = append(slices.Clone(one.Reasons), fmt.Sprintf("%d there by the cluster's autoscaler", *one.Current))
		if *one.Current != wanted {
			one.wait(v1beta1.WaitsForAutoscaler, "the autoscaler, which owns the number")
		}
	}
	switch {
	case !isOurCopy(answer.Copy, e.UID):
		one.Copy = v1beta1.CopyConflict
	case answer.Copy.GetDeletionTimestamp() != nil, wanted == 0 && *one.Current > 0:
		one.Copy = v1beta1.CopyLeaving
	case propagationplan.Outlived(wish.Source, answer.Copy):
		one.Copy = v1beta1.CopyLeaving
		one.wait(v1beta1.WaitsForEarlierCopy, e.copyOrigin(answer.Copy))
	case taken:
		one.Copy = v1beta1.CopyInSync
	case specField != "" && !scaled && *one.Current != wanted:
		one.Copy = v1beta1.CopyProgressing
	case wanted > 0 && !inSync(wish, answer.Copy):
		one.Copy = v1beta1.CopyBehind
	default:
		one.Copy = v1beta1.CopyInSync
	}
	if wish.Refusal != "" && one.Copy != v1beta1.CopyConflict {
		one.Copy = v1beta1.CopyBehind
		one.wait(v1beta1.WaitsForPermission, wish.Refusal)
	}
}

// wait sets what the copy waits for, unless why is empty.
func (one *cluster) wait(reason v1beta1.WaitReason, why string) {
	if why != "" {
		one.WaitReason, one.WaitsFor = reason, why
	}
}

// copyOrigin describes the source of a copy that is not of the present object.
func (e *Evidence) copyOrigin(copy *unstructured.Unstructured) string {
	of, _, _ := strings.Cut(copy.GetAnnotations()[v1beta1.SourceAnnotation], "/")
	if of == string(e.Object.GetUID()) {
		return "the copy of an earlier round to go"
	}
	return "the copy of an earlier object of that name to go, or to be taken over"
}

// unreadableReason returns why a cluster does not show its copy and, if the federation itself lacks the permission, how to
// give it.
func (e *Evidence) unreadableReason(err error) string {
	custom := propagationplan.KindOf(e.Resource) == nil
	if custom && apierrors.IsForbidden(err) && strings.Contains(err.Error(), federationAccount) {
		return joinFor + e.Resource.GroupResource().String()
	}
	return v1beta1.Printable(err.Error())
}

// joinFor is how the federation gets the permission for a custom kind in a member.
const joinFor = "join it with --custom-kinds "

// federationAccount is the name prefix of the federation's account in a member.
const federationAccount = "system:serviceaccount:" + v1beta1.FederationNamespace + ":"

// setNumbers reads the numbers of a copy.
func (one *cluster) setNumbers(d *decision, r schema.GroupVersionResource, u *unstructured.Unstructured) {
	there := int64(1)
	if specField, readyField := d.replicaFields(r); specField != "" {
		there, _, _ = unstructured.NestedInt64(u.Object, "spec", specField)
		one.Ready, _, _ = unstructured.NestedInt64(u.Object, "status", readyField)
	}
	one.finished = v1beta1.JobEnd(u) != ""
	one.Current, one.Generation, one.Hash = &there, u.GetGeneration(), v1beta1.Printable(u.GetAnnotations()[v1beta1.AppliedHashAnnotation])
	one.ObservedGeneration, _, _ = unstructured.NestedInt64(u.Object, "status", "observedGeneration")
}

// setWaitReason sets what the cluster waits for. says is what the federation says of it, or nil.
func (one *cluster) setWaitReason(c *v1beta1.Cluster, says *v1beta1.ClusterOutOfSync, divided bool, now time.Time) {
	switch {
	case one.Copy == v1beta1.CopyUnreachable:
		one.wait(v1beta1.WaitsForCluster, "cluster is not ready"+notReadySince(c, now)+phrase.Prefixed(": ", c.WhyNotReady()))
	case one.WaitsFor != "":
	case says != nil && says.Message != "":
		one.wait(v1beta1.WaitsForPropagation, says.Message)
	case one.Copy == v1beta1.CopyConflict:
		one.wait(v1beta1.WaitsForConflict, "an object of that name that is not the federation's; delete or rename one of them")
	case one.Copy == v1beta1.CopyMissing:
		one.wait(v1beta1.WaitsForWrite, "to be written")
	case one.Current != nil && one.ObservedGeneration > 0 && one.ObservedGeneration < one.Generation:
		one.wait(v1beta1.WaitsForControllers, "the cluster's controllers to take it up")
	case divided && !one.finished && one.Current != nil && one.Ready < min(*one.Current, one.Desired) && one.Copy != v1beta1.CopyLeaving:
		one.wait(v1beta1.WaitsForReplicas, phrase.Count(min(*one.Current, one.Desired)-one.Ready, "replica")+" to get ready")
	}
}

func notReadySince(c *v1beta1.Cluster, now time.Time) string {
	if ready := c.Condition(v1beta1.ClusterReady); ready != nil {
		return " for " + phrase.Since(ready.LastTransitionTime.Time, now)
	}
	return ""
}

// sinceWhen returns when the last decisions changed the number of a cluster; nil if they do not tell.
func sinceWhen(history []v1beta1.PlacementDecision, cluster string) *metav1.Time {
	for i := range history {
		if slices.ContainsFunc(history[i].Changes, func(c v1beta1.PlacementChange) bool { return c.Cluster == cluster && !c.Overflow }) {
			return &history[i].At
		}
	}
	return nil
}
