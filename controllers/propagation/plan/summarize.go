package plan

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// State is the state of a federated object in one cluster.
type State string

// States of a copy.
const (
	// Synced: the copy is as desired (or rightly absent).
	Synced State = "Synced"
	// Progressing: the copy is as the law and the rollout allow for now; Message says what it waits for.
	Progressing State = "Progressing"
	// Pending: an operation is in progress or will be retried.
	Pending State = "Pending"
	// Rejected: the member rejected the operation; Message has its words.
	Rejected State = "Rejected"
	// Conflict: an object of that name is there that is not ours; it is left alone.
	Conflict State = "Conflict"
	// Unreachable: the cluster is unreachable; nothing is known of the copy.
	Unreachable State = "Unreachable"
)

// Copy is what is known of a federated object in one cluster.
type Copy struct {
	Cluster string
	State   State
	// Message explains a State other than Synced.
	Message string
	// Object is the observed copy; nil if there is none or nothing is known.
	Object *unstructured.Unstructured
	// Looked is the generation of the federated object at the last sync of the copy.
	Looked int64
	// Outdated: the copy's pod template differs from the federated object's.
	Outdated bool
	// MissedBefore is when the rollout of the pod template before missed its deadline, see the function MissedBefore.
	MissedBefore string
	// Unmade is how many pods the cluster has been unable to create for a while, see Unmade.
	Unmade int64
	// ReadyEndpoints: at least one endpoint of the copy is ready. EndpointsUnknown: the cluster does not let us list
	// them.
	ReadyEndpoints, EndpointsUnknown bool
	// LoadBalancers are the allowed networks of addresses; none means any.
	LoadBalancers []string
	// Unlisted: the cluster does not let us list objects of this kind. A missing Object means nothing.
	Unlisted bool
	// Alone: it is Unreachable for this process only; the federation reaches it.
	Alone bool
}

// ConditionPropagated is the type of the condition whether all clusters are as desired.
const ConditionPropagated = v1beta1.ConditionPropagated

// Summary is what to write to the federated object. It is empty if nothing changes.
type Summary struct {
	// Version is the resource version of the summed-up object.
	Version string
	// Status is merged into the status.
	Status map[string]any
	// Annotations are merged into the annotations.
	Annotations map[string]any
}

// Empty reports whether there is nothing to write.
func (s Summary) Empty() bool { return len(s.Status) == 0 && len(s.Annotations) == 0 }

// Patch returns the summary as a JSON merge patch (RFC 7386) of the subresource status. Such a patch replaces lists as
// a whole: with conditions, which include others', it requires the version that they were read from. So does another
// round of a Job, which cannot be taken back: a process that held the object's shard before may write late.
func (s Summary) Patch() map[string]any {
	patch, metadata := map[string]any{}, map[string]any{}
	if len(s.Status) > 0 {
		patch["status"] = s.Status
	}
	if s.Status["conditions"] != nil || s.Annotations[v1beta1.JobRoundAnnotation] != nil {
		metadata["resourceVersion"] = s.Version
	}
	if len(s.Annotations) > 0 {
		metadata["annotations"] = s.Annotations
	}
	if len(metadata) > 0 {
		patch["metadata"] = metadata
	}
	return patch
}

// Summarize sums up the copies of an object and returns what differs from its present status. now is the time for
// changed conditions, as RFC 3339.
func Summarize(k *Kind, federated *unstructured.Unstructured, copies []Copy, now string) Summary {
	s := Summary{Version: federated.GetResourceVersion()}
	copies = boundCopies(k, federated, copies)
	s.annotate(federated, v1beta1.OutOfSyncAnnotation, outOfSync(federated, copies))
	if k.Notes() {
		s.annotate(federated, v1beta1.PropagatedAnnotation, notPropagated(federated, copies, now))
	}
	if k.Status == nil {
		return s
	}
	wanted := k.Status(federated, copies)
	conditions, _ := wanted["conditions"].([]any)
	conditions = append(append(conditions, propagatedCondition(federated, copies)), momentary(federated, copies)...)
	wanted["conditions"] = k.mergeConditions(federated, conditions, now)
	if k.NoConditions {
		delete(wanted, "conditions")
	}

	current, _ := federated.Object["status"].(map[string]any)
	for key, value := range wanted {
		if !equalStatus(value, current[key]) {
			if s.Status == nil {
				s.Status = map[string]any{}
			}
			s.Status[key] = mergePatchOf(current[key], value)
		}
	}
	switch {
	case k.Addresses:
		s.annotate(federated, v1beta1.ServiceIngressesAnnotation, serviceIngresses(k, federated, copies))
	case k.Failure:
		s.annotate(federated, v1beta1.CreatedPodsAnnotation, podsMade(federated, copies))
	case k.Rounds:
		s.annotate(federated, v1beta1.JobRoundAnnotation, jobRound(federated, copies))
	}
	return s
}

// annotate sets an annotation if it has changed; "" removes it.
func (s *Summary) annotate(federated *unstructured.Unstructured, key, text string) {
	if text == federated.GetAnnotations()[key] {
		return
	}
	if s.Annotations == nil {
		s.Annotations = map[string]any{}
	}
	s.Annotations[key] = text
	if text == "" {
		s.Annotations[key] = nil
	}
}

// mergePatchOf returns the JSON merge patch (RFC 7386) that turns one value into another: what an object has no more is null.
func mergePatchOf(from, to any) any {
	before, isObject := from.(map[string]any)
	after, staysObject := to.(map[string]any)
	if !isObject || !staysObject {
		return to
	}
	patch := map[string]any{}
	for key := range before {
		patch[key] = nil
	}
	for key, value := range after {
		patch[key] = mergePatchOf(before[key], value)
	}
	return patch
}

// equalStatus compares a status value with the present one; missing, zero and empty are equal.
func equalStatus(want, have any) bool {
	if isEmpty(want) && isEmpty(have) {
		return true
	}
	return reflect.DeepEqual(want, have)
}

func isEmpty(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, item := range x {
			if !isEmpty(item) {
				return false
			}
		}
		return true
	case []any:
		return len(x) == 0
	}
	return reflect.ValueOf(v).IsZero()
}

func hasCondition(u *unstructured.Unstructured, kind, status string) bool {
	return v1beta1.ConditionOf(u, kind)["status"] == status
}

// IsReady reports whether a Cluster was ready at its last health check.
func IsReady(cluster *unstructured.Unstructured) bool {
	return hasCondition(cluster, string(v1beta1.ClusterReady), "True")
}

// IsReached reports whether a Cluster is ready for the federation as a whole.
func IsReached(cluster *unstructured.Unstructured) bool {
	partly := v1beta1.ConditionOf(cluster, string(v1beta1.ClusterPartiallyReachable))
	return IsReady(cluster) || partly["status"] == "True" && partly["reason"] == v1beta1.ReasonReachableByMajority
}

// IsSilent reports whether the heartbeats of a cluster's nodes are stale since it returned (ADR 56). For a cluster that
// is not reported as ready yet that is unknown.
func IsSilent(cluster *unstructured.Unstructured) bool {
	return !IsReady(cluster) || hasCondition(cluster, string(v1beta1.ClusterNodeHeartbeatsStale), "True")
}

func conditionMessage(u *unstructured.Unstructured, kind string) string {
	message, _ := v1beta1.ConditionOf(u, kind)["message"].(string)
	return message
}

func newCondition(kind string, ok bool, yes, no, message string) map[string]any {
	c := map[string]any{"type": kind, "status": "True", "reason": yes, "message": message}
	if !ok {
		c["status"], c["reason"] = "False", no
	}
	return c
}

// maxNamed is the maximum of clusters that a condition names.
const maxNamed = 10

func andMore(n int) string { return fmt.Sprintf("and %d more", n) }

// propagatedCondition returns the condition that all clusters are as desired. It names those that are not.
func propagatedCondition(federated *unstructured.Unstructured, copies []Copy) map[string]any {
	var not []string
	reason := ""
	for _, c := range copies {
		if c.State != Synced {
			not = append(not, fmt.Sprintf("%s: %s", c.Cluster, c.Message))
			reason = worseReason(reason, string(c.State))
		}
	}
	message := fmt.Sprintf("%d clusters are as desired", len(copies))
	if placement := v1beta1.ParsePlacement(federated.GetAnnotations()[v1beta1.PlacementAnnotation]); placement != nil && placement.Unschedulable > 0 {
		not = append(not, fmt.Sprintf("%d replicas fit in no cluster", placement.Unschedulable))
		reason = worseReason(reason, "InsufficientCapacity")
	}
	if len(not) > 0 {
		message = joinBounded(not)
	} else if v1beta1.StaysAtFederation(federated) {
		message = "it goes to no cluster: the federation acts on it, for all clusters together"
	} else if by := autoscaledClusters(copies); len(by) > 0 {
		message += "; autoscalers own the number of replicas in " + joined(by, ", ") + ": spec.replicas is not asked for there"
	}
	return newCondition(v1beta1.ConditionPropagated, len(not) == 0, "AllClusters", reason, message)
}

// autoscaledClusters returns the clusters in which an autoscaler decides how many replicas a copy has.
func autoscaledClusters(copies []Copy) (clusters []string) {
	for _, c := range copies {
		if c.Object != nil && (ScaledByMember(c.Object) || c.Object.GetAnnotations()[AutoscaledAnnotation] != "") {
			clusters = append(clusters, c.Cluster)
		}
	}
	return clusters
}

// outOfSync returns the value of v1beta1.OutOfSyncAnnotation; "" if no cluster that can be reached is out of sync.
func outOfSync(federated *unstructured.Unstructured, copies []Copy) string {
	if federated.GetAnnotations()[v1beta1.PlacementAnnotation] == v1beta1.PlacementPending && federated.GetDeletionTimestamp() == nil {
		return "" // it goes nowhere yet; the placement says so
	}
	var all []v1beta1.ClusterOutOfSync
	for _, c := range copies {
		if c.State != Synced && c.State != Unreachable {
			all = append(all, v1beta1.ClusterOutOfSync{Cluster: c.Cluster, Reason: string(c.State), Message: c.Message})
		}
	}
	return v1beta1.NewOutOfSync(all).String()
}

// notPropagated returns the value of v1beta1.PropagatedAnnotation; "" if no cluster reports that it is not as desired.
// An unreachable one does not count; its Cluster reports that.
func notPropagated(federated *unstructured.Unstructured, copies []Copy, now string) string {
	if federated.GetAnnotations()[v1beta1.PlacementAnnotation] == v1beta1.PlacementPending && federated.GetDeletionTimestamp() == nil {
		return "" // it goes nowhere yet; the placement says so
	}
	c := propagatedCondition(federated, slices.DeleteFunc(slices.Clone(copies), func(c Copy) bool { return c.State == Unreachable }))
	if c["status"] == "True" {
		return ""
	}
	c["lastTransitionTime"] = now
	if old := v1beta1.ConditionOf(federated, v1beta1.ConditionPropagated)["lastTransitionTime"]; old != nil {
		c["lastTransitionTime"] = old
	}
	text, _ := json.Marshal(c) // strings
	return string(text)
}

// worseReason returns the more severe of two reasons.
func worseReason(a, b string) string {
	order := []string{string(Rejected), string(Conflict), string(AddressRejected), "InsufficientCapacity", string(Unreachable), string(Progressing), string(Pending), ""}
	if slices.Index(order, a) <= slices.Index(order, b) {
		return a
	}
	return b
}

// mergeConditions merges conditions into the object's list: others stay, except momentary ones that are over; the transition
// time changes with the status, the update time with the reason too.
func (k *Kind) mergeConditions(federated *unstructured.Unstructured, wanted []any, now string) []any {
	list, _, _ := unstructured.NestedSlice(federated.Object, "status", "conditions")
	list = slices.DeleteFunc(list, func(old any) bool { return isPast(old, wanted) })
	for _, item := range wanted {
		c := item.(map[string]any)
		i := slices.IndexFunc(list, func(old any) bool { o, _ := old.(map[string]any); return o["type"] == c["type"] })
		if i < 0 {
			list, i = append(list, map[string]any{}), len(list)
		}
		old := list[i].(map[string]any)
		c["lastTransitionTime"] = now
		if at, ok := old["lastTransitionTime"]; ok && old["status"] == c["status"] {
			c["lastTransitionTime"] = at
		}
		if c["message"] == "" {
			delete(c, "message")
		}
		if v, ok := old["observedGeneration"]; ok {
			c["observedGeneration"] = v
		}
		if k.UpdateTimes {
			c["lastUpdateTime"] = now
			if at := old["lastUpdateTime"]; at != nil && old["status"] == c["status"] && old["reason"] == c["reason"] {
				c["lastUpdateTime"] = at
			}
		}
		list[i] = c
	}
	return list
}
