package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
	"federation/apiserver/client"
	explainplan "federation/controllers/explain/plan"
)

// status is the state of the whole federation, as -o json and yaml print it.
type status struct {
	Name    string `json:"name,omitempty"`
	DNSZone string `json:"dnsZone,omitempty"`
	// Healthy: all clusters serve, all objects are in sync, no DNS provider is behind, no component has failed, all load balancers are alive, and
	// all kinds could be read.
	Healthy  bool            `json:"healthy"`
	Clusters []clusterStatus `json:"clusters"`
	Kinds    []kindStatus    `json:"kinds"`
	// NotCounted are the kinds that the user may not list.
	NotCounted []string `json:"notCounted,omitempty"`
	// Components are the parts of the federation's processes that have failed.
	Components []client.Component `json:"components,omitempty"`
	// DNSProviders are those that hold the zone; none if that is not published.
	DNSProviders []v1beta1.DNSProvider `json:"dnsProviders,omitempty"`
	// LoadBalancers are the federation's own; none if the user may not see their Leases.
	LoadBalancers []explainplan.LoadBalancer `json:"loadBalancers,omitempty"`
	// Reasons counts the objects that are out of sync by their reason.
	Reasons map[string]int `json:"reasons,omitempty"`
	// OutOfSync are the objects that are not as desired in all clusters, longest first.
	OutOfSync []objectStatus `json:"outOfSync,omitempty"`
}

type clusterStatus struct {
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
	// phaseWithShare is the phase as in kubectl get clusters.
	phaseWithShare string
}

type kindStatus struct {
	Kind      string `json:"kind"`
	Objects   int    `json:"objects"`
	OutOfSync int    `json:"outOfSync,omitempty"`
	// Pending wait for their first placement.
	Pending  int `json:"pending,omitempty"`
	Deleting int `json:"deleting,omitempty"`
	// Unschedulable are replicas that fit nowhere.
	Unschedulable int64 `json:"unschedulable,omitempty"`
}

type objectStatus struct {
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	Reason    string    `json:"reason"`
	Message   string    `json:"message,omitempty"`
	Since     time.Time `json:"since"`
}

// countObject counts an object by its metadata.
func (k *kindStatus) countObject(o metav1.Object) {
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

// addObject counts an object, and lists it if its condition c says that it is not as desired.
func (s *status) addObject(k *kindStatus, u metav1.Object, c *explainplan.Condition) {
	k.countObject(u)
	one := objectStatus{Kind: k.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
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

// summarize sorts, sums up, and judges.
func (s *status) summarize() {
	slices.SortFunc(s.OutOfSync, func(a, b objectStatus) int {
		if n := a.Since.Compare(b.Since); n != 0 {
			return n
		}
		return strings.Compare(a.Kind+a.Namespace+"/"+a.Name, b.Kind+b.Namespace+"/"+b.Name)
	})
	s.Reasons = map[string]int{}
	for _, o := range s.OutOfSync {
		s.Reasons[o.Reason]++
	}
	s.Healthy = len(s.OutOfSync) == 0 && len(s.Components) == 0 && len(s.NotCounted) == 0
	for _, c := range s.Clusters {
		s.Healthy = s.Healthy && c.healthy()
	}
	for _, p := range s.DNSProviders {
		s.Healthy = s.Healthy && p.Published
	}
	for i := range s.LoadBalancers {
		s.Healthy = s.Healthy && s.LoadBalancers[i].Alive
	}
}

func (c *clusterStatus) healthy() bool {
	return c.Ready && c.Phase == string(v1beta1.PhaseServing) && c.DeletionsPendingApproval == 0 && !c.PartiallyReachable
}

// stateText returns the cluster's state in the style of kubectl get nodes.
func (c *clusterStatus) stateText() string {
	words := []string{"Ready"}
	if !c.Ready {
		words[0] = "NotReady"
	}
	if c.Phase != string(v1beta1.PhaseServing) {
		words = append(words, c.phaseWithShare)
	}
	return strings.Join(withoutWord(append(words, c.OutOfService), ""), ",")
}

func printStatus(out io.Writer, s *status, rows int, now time.Time) {
	ready, objects := 0, 0
	for i := range s.Clusters {
		if s.Clusters[i].healthy() {
			ready++
		}
	}
	for _, k := range s.Kinds {
		objects += k.Objects
	}
	tell(out, "Federation%s%s: %d of %s serve, %s, %d out of sync\n\n", phrase.Prefixed(" ", s.Name), phrase.Prefixed(", DNS zone ", s.DNSZone),
		ready, phrase.Count(int64(len(s.Clusters)), "cluster"), phrase.Count(int64(objects), "object"), len(s.OutOfSync))
	printClusters(out, s.Clusters, rows, now)
	printComponents(out, s.Components, now)
	printProviders(out, s.DNSProviders, now)
	printBalancersAlive(out, s.LoadBalancers, rows)
	printKinds(out, s.Kinds)
	if len(s.NotCounted) > 0 {
		tell(out, "\nNot counted, because you may not list them in all namespaces: %s\n", strings.Join(s.NotCounted, ", "))
	}
	printOutOfSync(out, s, rows, now)
}

func printClusters(out io.Writer, all []clusterStatus, rows int, now time.Time) {
	if len(all) == 0 {
		tell(out, "There are no clusters yet: kubectl federation join adds one.\n")
		return
	}
	shown := slices.Clone(all)
	slices.SortStableFunc(shown, func(a, b clusterStatus) int { return problemOrder(a) - problemOrder(b) })
	shown = shown[:min(rows, len(shown))]
	slices.SortFunc(shown, func(a, b clusterStatus) int { return strings.Compare(a.Name, b.Name) })
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	tell(w, "CLUSTER\tPLACE\tSTATUS\tSINCE\tDNS\tCPU FREE\tMEMORY FREE\tPODS FREE\tMESSAGE\n")
	for i := range shown {
		c := &shown[i]
		tell(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", c.Name, phrase.Prefixed(c.Region+"/", strings.Join(c.Zones, ",")), c.stateText(), agoOrDash(c.Since, now), c.DNSWeight,
			c.free(corev1.ResourceCPU), c.free(corev1.ResourceMemory), c.free(corev1.ResourcePods), shortText(c.nodeWarning()))
	}
	_ = w.Flush() // nobody reads the error
	if more := len(all) - len(shown); more > 0 {
		tell(out, "and %s more (--all shows them)\n", phrase.Count(int64(more), "cluster"))
	}
}

// problemOrder sorts problems first.
func problemOrder(c clusterStatus) int {
	switch {
	case !c.healthy():
		return 0
	case len(c.Taints) > 0 || c.DNSWeight == 0:
		return 1
	}
	return 2
}

func (c *clusterStatus) nodeWarning() string {
	if c.Message == "" && c.Unschedulable > 0 {
		return fmt.Sprintf("%s cannot be scheduled there", phrase.Count(c.Unschedulable, "pod"))
	}
	return c.Message
}

// free returns an amount in a readable unit; "-" if unknown.
func (c *clusterStatus) free(name corev1.ResourceName) string {
	text, ok := c.Free[name]
	if !ok {
		return "-"
	}
	q, err := resource.ParseQuantity(text)
	switch {
	case err != nil:
		return text
	case name == corev1.ResourceMemory:
		return fmt.Sprintf("%.1fGi", float64(q.Value())/(1<<30))
	case name == corev1.ResourceCPU:
		return fmt.Sprintf("%.1f", float64(q.MilliValue())/1000)
	}
	return fmt.Sprint(q.Value())
}

func printKinds(out io.Writer, kinds []kindStatus) {
	if len(kinds) == 0 {
		tell(out, "\nNo objects are spread.\n")
		return
	}
	tell(out, "\n")
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	tell(w, "KIND\tOBJECTS\tOUT OF SYNC\tPENDING\tDELETING\tUNSCHEDULABLE REPLICAS\n")
	for _, k := range kinds {
		tell(w, "%s\t%d\t%d\t%d\t%d\t%d\n", k.Kind, k.Objects, k.OutOfSync, k.Pending, k.Deleting, k.Unschedulable)
	}
	_ = w.Flush() // nobody reads the error
}

func printOutOfSync(out io.Writer, s *status, rows int, now time.Time) {
	if len(s.OutOfSync) == 0 {
		return
	}
	var counts []string
	for _, reason := range slices.Sorted(maps.Keys(s.Reasons)) {
		counts = append(counts, fmt.Sprintf("%d %s", s.Reasons[reason], reason))
	}
	tell(out, "\nOut of sync, longest first (%s):\n", strings.Join(counts, ", "))
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	tell(w, "OBJECT\tFOR\tREASON\tMESSAGE\n")
	for _, o := range s.OutOfSync[:min(rows, len(s.OutOfSync))] {
		tell(w, "%s\t%s\t%s\t%s\n", objectName(o.Kind, o.Namespace, o.Name), phrase.Since(o.Since, now), o.Reason, shortText(o.Message))
	}
	_ = w.Flush() // nobody reads the error
	if more := len(s.OutOfSync) - rows; more > 0 {
		tell(out, "and %s more (--all shows them)\n", phrase.Count(int64(more), "object"))
	}
}

func withoutWord(words []string, word string) []string {
	return slices.DeleteFunc(words, func(w string) bool { return w == word })
}
