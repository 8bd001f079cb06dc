package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
	explainplan "federation/controllers/explain/plan"
)

// stateText returns the cluster's state in the style of kubectl get nodes.
func stateText(c *explainplan.ClusterStatus) string {
	words := []string{"Ready"}
	if !c.Ready {
		words[0] = "NotReady"
	}
	if c.Phase != string(v1beta1.PhaseServing) {
		words = append(words, c.PhaseWithShare)
	}
	return phrase.Join(",", append(words, c.OutOfService)...)
}

// extent is how much of a status is shown.
type extent struct {
	rows int
	cut  bool // long messages, for a terminal
}

// message returns a message in one line.
func (e extent) message(text string) string {
	if e.cut {
		return shortText(text)
	}
	return strings.ReplaceAll(text, "\n", " ")
}

// serves reports whether DNS gives the addresses of a cluster.
func serves(c *explainplan.ClusterStatus) bool { return c.Ready && c.DNSWeight > 0 }

func printStatus(out io.Writer, s *explainplan.Status, e extent, now time.Time) {
	serving, objects := 0, 0
	for i := range s.Clusters {
		if serves(&s.Clusters[i]) {
			serving++
		}
	}
	for _, k := range s.Kinds {
		objects += k.Objects
	}
	tell(out, "Federation%s%s: %d of %s serve, %s, %d out of sync\n\n", phrase.Prefixed(" ", s.Name), phrase.Prefixed(", DNS zone ", s.DNSZone),
		serving, phrase.Count(int64(len(s.Clusters)), "cluster"), phrase.Count(int64(objects), "object"), len(s.OutOfSync))
	printClusters(out, s.Clusters, e, now)
	if s.Leader != nil && !s.Leader.Alive {
		tell(out, "\nNobody leads: %s renewed the Lease last, %s ago. Nothing is placed, moved or failed over until a process of the controllers runs.\n", cmp.Or(s.Leader.Process, "nobody"), phrase.Since(s.Leader.Renewed.Time, now))
	}
	printComponents(out, s.Components, now)
	printProviders(out, s.DNSProviders, now)
	printBalancersAlive(out, s.LoadBalancers, e.rows)
	printKinds(out, s.Kinds)
	if len(s.NotCounted) > 0 {
		tell(out, "\nNot counted, because you may not list them in all namespaces: %s\n", strings.Join(s.NotCounted, ", "))
	}
	printOutOfSync(out, s, e, now)
}

func printClusters(out io.Writer, all []explainplan.ClusterStatus, e extent, now time.Time) {
	if len(all) == 0 {
		tell(out, "There are no clusters yet: kubectl federation join adds one.\n")
		return
	}
	shown := slices.Clone(all)
	slices.SortStableFunc(shown, func(a, b explainplan.ClusterStatus) int { return problemOrder(a) - problemOrder(b) })
	shown = shown[:min(e.rows, len(shown))]
	slices.SortFunc(shown, func(a, b explainplan.ClusterStatus) int { return strings.Compare(a.Name, b.Name) })
	w := newTable(out, "CLUSTER\tPLACE\tSTATUS\tSINCE\tDNS\tCPU FREE\tMEMORY FREE\tPODS FREE\tMESSAGE")
	for i := range shown {
		c := &shown[i]
		tell(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", c.Name, phrase.Prefixed(c.Region+"/", strings.Join(c.Zones, ",")), stateText(c), agoOrDash(c.Since, now), c.DNSWeight,
			free(c, corev1.ResourceCPU), free(c, corev1.ResourceMemory), free(c, corev1.ResourcePods), e.message(nodeWarning(c)))
	}
	w.end()
	printMore(out, "and", len(all)-len(shown), "cluster")
}

// problemOrder sorts problems first.
func problemOrder(c explainplan.ClusterStatus) int {
	switch {
	case !c.Healthy():
		return 0
	case len(c.Taints) > 0 || c.DNSWeight == 0:
		return 1
	}
	return 2
}

func nodeWarning(c *explainplan.ClusterStatus) string {
	if c.Message == "" && c.Unschedulable > 0 {
		return fmt.Sprintf("%s cannot be scheduled there", phrase.Count(c.Unschedulable, "pod"))
	}
	return c.Message
}

// free returns an amount in a readable unit; "-" if unknown.
func free(c *explainplan.ClusterStatus, name corev1.ResourceName) string {
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

func printKinds(out io.Writer, kinds []explainplan.KindStatus) {
	if len(kinds) == 0 {
		tell(out, "\nNo objects are spread.\n")
		return
	}
	tell(out, "\n")
	w := newTable(out, "KIND\tOBJECTS\tOUT OF SYNC\tPENDING\tDELETING\tUNSCHEDULABLE REPLICAS")
	for _, k := range kinds {
		tell(w, "%s\t%d\t%d\t%d\t%d\t%d\n", k.Kind, k.Objects, k.OutOfSync, k.Pending, k.Deleting, k.Unschedulable)
	}
	w.end()
}

func printOutOfSync(out io.Writer, s *explainplan.Status, e extent, now time.Time) {
	if len(s.OutOfSync) == 0 {
		return
	}
	var counts []string
	for _, reason := range slices.Sorted(maps.Keys(s.Reasons)) {
		counts = append(counts, fmt.Sprintf("%d %s", s.Reasons[reason], reason))
	}
	tell(out, "\nOut of sync, longest first (%s):\n", strings.Join(counts, ", "))
	w := newTable(out, "OBJECT\tFOR\tREASON\tMESSAGE")
	for _, o := range s.OutOfSync[:min(e.rows, len(s.OutOfSync))] {
		tell(w, "%s\t%s\t%s\t%s\n", objectName(o.Kind, o.Namespace, o.Name), phrase.Since(o.Since, now), o.Reason, e.message(o.Message))
	}
	w.end()
	printMore(out, "and", len(s.OutOfSync)-e.rows, "object")
}
