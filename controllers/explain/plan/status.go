package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
)

// Status is the state of the whole federation, as -o json and yaml print it.
type Status struct {
	Name    string `json:"name,omitempty"`
	DNSZone string `json:"dnsZone,omitempty"`
	// Healthy: all clusters serve, all objects are in sync, no DNS provider is behind, no component has failed, a process leads, all load balancers are alive, and
	// all kinds could be read.
	Healthy  bool            `json:"healthy"`
	Clusters []ClusterStatus `json:"clusters"`
	Kinds    []KindStatus    `json:"kinds"`
	// NotCounted are the kinds that the user may not list.
	NotCounted []string `json:"notCounted,omitempty"`
	// Leader is the process that decides; nil where there is no election, or the user may not read its Lease.
	Leader *Leader `json:"leader,omitempty"`
	// Components are the parts of the federation's processes that have failed.
	Components []v1beta1.FailedComponent `json:"components,omitempty"`
	// DNSProviders are those that hold the zone; none if that is not published.
	DNSProviders []v1beta1.DNSProvider `json:"dnsProviders,omitempty"`
	// LoadBalancers are the federation's own; none if the user may not see their Leases.
	LoadBalancers []v1beta1.RegisteredLoadBalancer `json:"loadBalancers,omitempty"`
	// Reasons counts the objects that are out of sync by their reason.
	Reasons map[string]int `json:"reasons,omitempty"`
	// OutOfSync are the objects that are not as desired in all clusters, longest first.
	OutOfSync []ObjectStatus `json:"outOfSync,omitempty"`
}

// ClusterStatus says how a cluster stands.
type ClusterStatus struct {
	Name    string   `json:"name"`
	Region  string   `json:"region,omitempty"`
	Zones   []string `json:"zones,omitempty"`
	Version string   `json:"version,omitempty"`
	Ready   bool     `json:"ready"`
	Phase   string   `json:"phase"`
	// Since is when the phase began; Percent is the share that a returning cluster gets.
	Since     *metav1.Time `json:"since,omitempty"`
	Percent   int32        `json:"percent,omitempty"`
	DNSWeight int32        `json:"dnsWeight"`
	Taints    []string     `json:"taints,omitempty"`
	// OutOfService is SchedulingDisabled, Draining or Drained if its taints say so.
	OutOfService string `json:"outOfService,omitempty"`
	// Free is what is allocatable and not requested.
	Free          map[corev1.ResourceName]string `json:"free,omitempty"`
	Unschedulable int64                          `json:"unschedulablePods,omitempty"`
	// DeletionsPendingApproval is the number of copies whose deletion needs approval.
	DeletionsPendingApproval int32 `json:"deletionsPendingApproval,omitempty"`
	// PartiallyReachable: some processes of the federation reach it, and others do not.
	PartiallyReachable bool   `json:"partiallyReachable,omitempty"`
	Message            string `json:"message,omitempty"`
	// PhaseWithShare is the phase as in kubectl get clusters.
	PhaseWithShare string `json:"-"`
}

// KindStatus counts the objects of a kind.
type KindStatus struct {
	Kind      string `json:"kind"`
	Objects   int    `json:"objects"`
	OutOfSync int    `json:"outOfSync,omitempty"`
	// Pending wait for their first placement.
	Pending  int `json:"pending,omitempty"`
	Deleting int `json:"deleting,omitempty"`
	// Unschedulable are replicas that fit nowhere.
	Unschedulable int64 `json:"unschedulable,omitempty"`
}

// ObjectStatus is an object that is not as desired in all clusters.
type ObjectStatus struct {
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	Reason    string    `json:"reason"`
	Message   string    `json:"message,omitempty"`
	Since     time.Time `json:"since"`
}

// countObject counts an object by its metadata.
func (k *KindStatus) countObject(o metav1.Object) {
	k.Objects++
	if o.GetDeletionTimestamp() != nil {
		k.Deleting++
	}
	value := o.GetAnnotations()[v1beta1.PlacementAnnotation]
	if value == v1beta1.PlacementPending {
		k.Pending++
	}
	if p := v1beta1.ParsePlacement(value); p != nil {
		k.Unschedulable += p.Unschedulable
	}
}

// Add counts an object, and lists it if its condition c says that it is not as desired.
func (s *Status) Add(k *KindStatus, u metav1.Object, c *Condition) {
	k.countObject(u)
	one := ObjectStatus{Kind: k.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
	switch {
	case u.GetDeletionTimestamp() != nil:
		one.Reason, one.Message, one.Since = "Deleting", "its copies are being deleted", u.GetDeletionTimestamp().Time
	case c != nil && c.Status != "True":
		one.Reason, one.Message, one.Since = c.Reason, c.Message, c.Since
	case u.GetAnnotations()[v1beta1.PlacementAnnotation] == v1beta1.PlacementPending:
		one.Reason, one.Message, one.Since = "PlacementPending", "where it goes is yet to be decided", u.GetCreationTimestamp().Time
	default:
		return
	}
	k.OutOfSync++
	s.OutOfSync = append(s.OutOfSync, one)
}

// Summarize sorts, sums up, and judges.
func (s *Status) Summarize() {
	slices.SortFunc(s.OutOfSync, func(a, b ObjectStatus) int {
		if n := a.Since.Compare(b.Since); n != 0 {
			return n
		}
		return strings.Compare(a.Kind+a.Namespace+"/"+a.Name, b.Kind+b.Namespace+"/"+b.Name)
	})
	s.Reasons = map[string]int{}
	for _, o := range s.OutOfSync {
		s.Reasons[o.Reason]++
	}
	s.Healthy = len(s.OutOfSync) == 0 && len(s.Components) == 0 && len(s.NotCounted) == 0 && (s.Leader == nil || s.Leader.Alive)
	for _, c := range s.Clusters {
		s.Healthy = s.Healthy && c.Healthy()
	}
	for _, p := range s.DNSProviders {
		s.Healthy = s.Healthy && p.Published
	}
	for i := range s.LoadBalancers {
		s.Healthy = s.Healthy && s.LoadBalancers[i].Alive
	}
}

// Healthy reports whether the cluster serves, and nothing in it waits for somebody.
func (c *ClusterStatus) Healthy() bool {
	return c.Ready && c.Phase == string(v1beta1.PhaseServing) && c.DeletionsPendingApproval == 0 && !c.PartiallyReachable
}

// pendingDeletions describes in a sentence which deletions wait for approval in a cluster, or returns "".
func pendingDeletions(c *v1beta1.Cluster) string {
	copies := int64(0)
	for _, h := range c.Status.DeletionsPendingApproval {
		copies += int64(h.Copies)
	}
	if copies == 0 {
		return ""
	}
	return fmt.Sprintf("%s for approval, of copies whose objects are not known: kubectl federation approve-deletions %s --dry-run", phrase.Subject(copies, "deletion", "waits", "wait"), c.Name)
}

// drainWaits returns what the drain of a cluster, or its undoing, waits for; "" if for nothing, or time alone.
func drainWaits(c *v1beta1.Cluster) string {
	switch s := c.Status.Drain; {
	case s == nil:
		return ""
	case s.Message != "":
		return "drain: " + s.Message
	case s.Objects > 0:
		return fmt.Sprintf("drain: waits for %s", phrase.Count(int64(s.Objects), "object"))
	}
	return ""
}

// ClusterStatusOf returns the state of a cluster.
func ClusterStatusOf(c *v1beta1.Cluster) ClusterStatus {
	s := ClusterStatus{
		Name: c.Name, Region: c.Status.Region, Zones: c.Status.Zones, Version: c.Status.KubernetesVersion,
		Ready: c.IsReady(), Phase: string(c.Phase()), PhaseWithShare: c.PhaseWithShare(), DNSWeight: c.DNSWeight(), OutOfService: c.OutOfService(),
	}
	for _, t := range c.Spec.Taints {
		s.Taints = append(s.Taints, t.ToString())
	}
	if !s.Ready {
		s.Message = c.WhyNotReady()
	}
	if f := c.Status.Failover; f != nil {
		s.Since, s.Percent = &f.Since, f.Percent
		if f.Phase != v1beta1.PhaseServing {
			s.Message = phrase.Join("; ", s.Message, f.Message)
		}
	}
	for _, h := range c.Status.DeletionsPendingApproval {
		s.DeletionsPendingApproval += h.Copies
	}
	partly, drill := "", ""
	if c := c.Drill(); c != nil {
		drill = c.Message
	}
	if c := c.Condition(v1beta1.ClusterPartiallyReachable); c != nil {
		s.PartiallyReachable, partly = true, c.Message
	}
	s.Message = phrase.Join("; ", drill, s.Message, drainWaits(c), partly, pendingDeletions(c))
	if room := c.Status.Capacity; room != nil {
		s.Free = map[corev1.ResourceName]string{}
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
			free := room.Allocatable[name].DeepCopy()
			free.Sub(room.Requested[name])
			s.Free[name] = free.String()
		}
		s.Unschedulable = unschedulablePods(room)
	}
	return s
}

func unschedulablePods(room *v1beta1.ClusterCapacity) (pods int64) {
	for _, u := range room.Unschedulable {
		pods += int64(u.Pods)
	}
	return pods
}
