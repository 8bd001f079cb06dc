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

// Explanation is the output of explain, as -o json and yaml print it.
type Explanation struct {
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	Generation int64  `json:"generation,omitempty"`
	// Replicas that are requested; nil if the kind has none to divide.
	Replicas      *int64 `json:"replicas,omitempty"`
	Placed        int64  `json:"placed,omitempty"`
	Unschedulable int64  `json:"unschedulable,omitempty"`
	Ready         int64  `json:"ready,omitempty"`
	// ReadyBy is what Ready is from: the copies, if they can be read.
	ReadyBy ReadySource `json:"readyBy,omitempty"`
	// Policy that governs the object.
	Policy string `json:"policy,omitempty"`
	// Pending: the placement is pending. Deleting: it is being deleted.
	Pending  bool `json:"pending,omitempty"`
	Deleting bool `json:"deleting,omitempty"`
	// NotPropagated is why not all clusters are as desired; nil if they are, or if nothing is known.
	NotPropagated *Condition `json:"notPropagated,omitempty"`
	Notes         []string   `json:"notes,omitempty"`
	// Round of a Job, from the second on.
	Round     *JobRound                   `json:"round,omitempty"`
	Clusters  []ClusterExplanation        `json:"clusters"`
	Decisions []v1beta1.PlacementDecision `json:"decisions,omitempty"`
	// Across has the clusters' slices of each other for a Service.
	Across *AcrossExplanation `json:"crossCluster,omitempty"`
	// Routes has how the federation's load balancers serve an Ingress.
	Routes *RoutesExplanation `json:"routes,omitempty"`
}

// ReadySource is what a number of ready replicas is from; "" the copies.
type ReadySource string

// Sources of the number while copies cannot be read.
const (
	ReadyByStatus ReadySource = "status" // the object's own
	ReadyUnknown  ReadySource = "unknown"
)

// ClusterExplanation is one cluster's part.
type ClusterExplanation struct {
	Name string `json:"name"`
	// Desired is the placement's number; for an object without replicas 1 where it should be.
	Desired  int64 `json:"desired"`
	Overflow int64 `json:"overflow,omitempty"`
	// Home is what was placed there before the cluster was lost, and comes back.
	Home int64 `json:"home,omitempty"`
	// Current is what the copy requests; nil if there is none, or it could not be read.
	Current *int64    `json:"current,omitempty"`
	Ready   int64     `json:"ready,omitempty"`
	Copy    CopyState `json:"copy"`
	// Completions of a Job that the cluster should do in the current round, and those that it has done; nil if they are
	// not counted, or unknown.
	Completions *int64 `json:"completions,omitempty"`
	Succeeded   int64  `json:"succeeded,omitempty"`
	// Generation of the copy, and the one that its status is of.
	Generation         int64    `json:"generation,omitempty"`
	ObservedGeneration int64    `json:"observedGeneration,omitempty"`
	Hash               string   `json:"hash,omitempty"`
	Phase              string   `json:"phase"`
	Reasons            []string `json:"reasons,omitempty"`
	// Since is when the number last changed, as far as the last decisions tell.
	Since    *metav1.Time `json:"since,omitempty"`
	WaitsFor string       `json:"waitsFor,omitempty"`
	// finished: the copy is a Job that has ended.
	finished bool
}

// CopyState is the state of the copy in a cluster.
type CopyState string

// States of a copy, in the words that people read.
const (
	CopyInSync      CopyState = "in sync"
	CopyBehind      CopyState = "behind"
	CopyProgressing CopyState = "progressing"
	CopyMissing     CopyState = "missing"
	CopyLeaving     CopyState = "leaving"
	CopyConflict    CopyState = "conflict"
	CopyUnreachable CopyState = "unreachable"
	CopyUnreadable  CopyState = "unreadable"
	CopyNone        CopyState = "none"
)

// Explain makes the explanation from the evidence. It is pure.
func Explain(e Evidence) *Explanation {
	o := e.Object
	d := replayDecision(e)
	x := &Explanation{
		Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), Generation: o.GetGeneration(),
		Deleting: o.GetDeletionTimestamp() != nil, Notes: d.notes, Policy: d.policyName(),
		Pending: isUndecided(o), Round: jobRoundOf(o), Clusters: []ClusterExplanation{},
	}
	if c := ConditionOf(o, v1beta1.ConditionPropagated); c != nil && c.Status != "True" {
		x.NotPropagated = c
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
		x.Clusters = append(x.Clusters, one)
	}
	if specField != "" && slices.ContainsFunc(x.Clusters, func(c ClusterExplanation) bool { return c.Copy == CopyUnreadable }) {
		x.setReadyWithoutCopies(o, readyField)
	}
	if e.Across != nil {
		x.Across = explainAcross(e, x.Clusters)
	}
	if e.Routes != nil {
		x.Routes = explainRoutes(e.Routes, e.Clusters)
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
func (x *Explanation) setReadyWithoutCopies(o *unstructured.Unstructured, readyField string) {
	x.Ready, x.ReadyBy = 0, ReadyUnknown
	status, _, _ := unstructured.NestedMap(o.Object, "status")
	if delete(status, "conditions"); len(status) > 0 {
		x.Ready, _, _ = unstructured.NestedInt64(status, readyField)
		x.ReadyBy = ReadyByStatus
	}
}

// isUndecided reports whether it is yet to be decided where an object goes.
func isUndecided(o *unstructured.Unstructured) bool {
	return o.GetAnnotations()[v1beta1.PlacementAnnotation] == v1beta1.PlacementPending
}

func explainCluster(e Evidence, d *decision, p *v1beta1.Placement, c *v1beta1.Cluster) ClusterExplanation {
	one := ClusterExplanation{Name: c.Name, Phase: string(c.Phase()), Reasons: d.reasons[c.Name], Copy: CopyNone}
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
func (one *ClusterExplanation) setCopyState(e Evidence, d *decision, c *v1beta1.Cluster) {
	answer, wanted := e.Copies[c.Name], one.Desired+one.Overflow
	if answer.Err != nil {
		one.Copy, one.WaitsFor = CopyUnreadable, e.unreadableReason(answer.Err)
		if !c.IsReady() {
			one.Copy, one.WaitsFor = CopyUnreachable, ""
		}
		return
	}
	wish := e.desiredNow(c)
	if answer.Copy == nil {
		if wanted > 0 && wish.Presence != propagationplan.IfThere { // as for a finished Job
			one.Copy, one.WaitsFor = CopyMissing, wish.Refusal
			if e.isDefinition() { // our permission to write it is not known here
				one.WaitsFor = joinFor + e.Object.GetName()
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
			one.WaitsFor = "the autoscaler, which owns the number"
		}
	}
	switch {
	case !isOurCopy(answer.Copy, e.UID):
		one.Copy = CopyConflict
	case answer.Copy.GetDeletionTimestamp() != nil, wanted == 0 && *one.Current > 0:
		one.Copy = CopyLeaving
	case propagationplan.Outlived(wish.Source, answer.Copy):
		one.Copy, one.WaitsFor = CopyLeaving, e.copyOrigin(answer.Copy)
	case taken:
		one.Copy = CopyInSync
	case specField != "" && !scaled && *one.Current != wanted:
		one.Copy = CopyProgressing
	case wanted > 0 && !inSync(wish, answer.Copy):
		one.Copy = CopyBehind
	default:
		one.Copy = CopyInSync
	}
	if wish.Refusal != "" && one.Copy != CopyConflict {
		one.Copy, one.WaitsFor = CopyBehind, wish.Refusal
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
	return err.Error()
}

// joinFor is how the federation gets the permission for a custom kind in a member.
const joinFor = "join it with --custom-kinds "

// federationAccount is the name prefix of the federation's account in a member.
const federationAccount = "system:serviceaccount:" + v1beta1.FederationNamespace + ":"

// setNumbers reads the numbers of a copy.
func (one *ClusterExplanation) setNumbers(d *decision, r schema.GroupVersionResource, u *unstructured.Unstructured) {
	there := int64(1)
	if specField, readyField := d.replicaFields(r); specField != "" {
		there, _, _ = unstructured.NestedInt64(u.Object, "spec", specField)
		one.Ready, _, _ = unstructured.NestedInt64(u.Object, "status", readyField)
	}
	one.finished = v1beta1.JobEnd(u) != ""
	one.Current, one.Generation, one.Hash = &there, u.GetGeneration(), u.GetAnnotations()[v1beta1.AppliedHashAnnotation]
	one.ObservedGeneration, _, _ = unstructured.NestedInt64(u.Object, "status", "observedGeneration")
}

// setWaitReason sets what the cluster waits for. says is what the federation says of it, or nil.
func (one *ClusterExplanation) setWaitReason(c *v1beta1.Cluster, says *v1beta1.ClusterOutOfSync, divided bool, now time.Time) {
	switch {
	case one.Copy == CopyUnreachable:
		one.WaitsFor = "cluster is not ready" + notReadySince(c, now) + phrase.Prefixed(": ", c.WhyNotReady())
	case one.WaitsFor != "":
	case says != nil && says.Message != "":
		one.WaitsFor = says.Message
	case one.Copy == CopyConflict:
		one.WaitsFor = "an object of that name that is not the federation's; delete or rename one of them"
	case one.Copy == CopyMissing:
		one.WaitsFor = "to be written"
	case one.Current != nil && one.ObservedGeneration > 0 && one.ObservedGeneration < one.Generation:
		one.WaitsFor = "the cluster's controllers to take it up"
	case divided && !one.finished && one.Current != nil && one.Ready < min(*one.Current, one.Desired) && one.Copy != CopyLeaving:
		one.WaitsFor = fmt.Sprintf("%s to get ready", phrase.Count(min(*one.Current, one.Desired)-one.Ready, "replica"))
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
