package fleettest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// subjects are what can be shown.
var subjects = map[string]command{
	"replicas": showReplicas, "copies": showCopies, "field": showField, "conditions": showConditions,
	"placement": showPlacement, "history": showHistory, "across": showAcross,
	"clusters": showClusters, "readiness": showReadiness, "dns": showDNS,
	"writes": showWrites, "events": showEvents,
}

// show carries out show SUBJECT …: what it returns is in the script below it.
func show(p *player, args []string) ([]string, error) {
	if err := need(args, 1, "show SUBJECT …"); err != nil {
		return nil, err
	}
	subject := subjects[args[0]]
	if subject == nil {
		return nil, fmt.Errorf("there is nothing to show of %q", args[0])
	}
	return subject(p, args[1:])
}

// showReplicas carries out show replicas KIND/NAME: in each cluster, what is placed there, asked for there, and ready.
func showReplicas(p *player, args []string) (out []string, err error) {
	if err := need(args, 1, "show replicas KIND/NAME"); err != nil {
		return nil, err
	}
	t, u, err := p.object(args[0])
	if err != nil {
		return nil, err
	}
	placement := v1beta1.ParsePlacement(u.GetAnnotations()[v1beta1.PlacementAnnotation])
	if placement == nil {
		placement = &v1beta1.Placement{}
	}
	total := 0
	for _, m := range p.Members() {
		p.mu.Lock()
		ready := m.Ready(t.workload(), time.Now())
		p.mu.Unlock()
		total += ready
		asked := "none"
		if there := m.API.Get(t.GroupVersionResource, t.namespace, t.name); there != nil {
			asked = strconv.Itoa(replicasOf(there))
		}
		line := fmt.Sprintf("%-8s placed %-3d asked %-4s ready %d", m.Name, placement.Clusters[m.Name], asked, ready)
		if n := placement.Overflow[m.Name]; n > 0 {
			line += fmt.Sprintf("  overflow %d", n)
		}
		out = append(out, line)
	}
	line := fmt.Sprintf("%d asked for, %d ready", replicasOf(u), total)
	if placement.Unschedulable > 0 {
		line += fmt.Sprintf(", %d unschedulable", placement.Unschedulable)
	}
	return append(out, line), nil
}

// showCopies carries out show copies KIND/NAME [FIELD]: the clusters that hold a copy, with a field of it.
func showCopies(p *player, args []string) (out []string, err error) {
	if err := need(args, 1, "show copies KIND/NAME [FIELD]"); err != nil {
		return nil, err
	}
	t, err := p.target(args[0])
	if err != nil {
		return nil, err
	}
	for _, m := range p.Members() {
		u := m.API.Get(t.GroupVersionResource, t.namespace, t.name)
		line := m.Name + ": none"
		if u != nil {
			line = m.Name + ": a copy"
			if !p.isCopy(u) {
				line = m.Name + ": not ours"
			}
			if len(args) > 1 {
				line += ", " + valueAt(u, args[1])
			}
		}
		out = append(out, line)
	}
	return out, nil
}

// showField carries out show field KIND/NAME FIELD: a field of the object at the federation.
func showField(p *player, args []string) ([]string, error) {
	if err := need(args, 2, "show field KIND/NAME FIELD"); err != nil {
		return nil, err
	}
	_, u, err := p.object(args[0])
	if err != nil {
		return []string{"not there"}, nil
	}
	return []string{valueAt(u, args[1])}, nil
}

// valueAt is the value at a path such as spec.containers.0.image.
func valueAt(u *unstructured.Unstructured, path string) string {
	var v any = u.Object
	for step := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(x) {
				return "none"
			}
			v = x[i]
		}
	}
	if v == nil {
		return "none"
	}
	return fmt.Sprint(v)
}

// showConditions carries out show conditions KIND/NAME
func showConditions(p *player, args []string) (out []string, err error) {
	if err := need(args, 1, "show conditions KIND/NAME"); err != nil {
		return nil, err
	}
	_, u, err := p.object(args[0])
	if err != nil {
		return nil, err
	}
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	if noted := v1beta1.ConditionOf(u, "Propagated"); len(list) == 0 && noted != nil {
		list = append(list, noted)
	}
	for _, item := range list {
		c := item.(map[string]any)
		out = append(out, strings.TrimSpace(fmt.Sprintf("%v=%v %v: %v", c["type"], c["status"], text(c["reason"]), text(c["message"]))))
	}
	slices.Sort(out)
	return out, nil
}

func text(v any) string {
	s, _ := v.(string)
	return withoutTimes.ReplaceAllString(s, "TIME")
}

// withoutTimes matches what is another one in each run.
var withoutTimes = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// showPlacement carries out show placement KIND/NAME: the decision, without its times.
func showPlacement(p *player, args []string) ([]string, error) {
	if err := need(args, 1, "show placement KIND/NAME"); err != nil {
		return nil, err
	}
	_, u, err := p.object(args[0])
	if err != nil {
		return nil, err
	}
	d := v1beta1.ParsePlacement(u.GetAnnotations()[v1beta1.PlacementAnnotation])
	if d == nil {
		return []string{"none"}, nil
	}
	out := []string{"clusters " + numbers(d.Clusters)}
	if d.Everywhere {
		out = []string{"clusters all"}
	}
	if len(d.Overflow) > 0 {
		out = append(out, "overflow "+numbers(d.Overflow))
	}
	if len(d.Home) > 0 {
		out = append(out, "home     "+numbers(d.Home))
	}
	if d.Unschedulable > 0 {
		out = append(out, fmt.Sprintf("unschedulable %d", d.Unschedulable))
	}
	if d.Policy != "" {
		out = append(out, "policy   "+d.Policy)
	}
	for _, n := range d.Notes {
		out = append(out, "note     "+n)
	}
	return out, nil
}

func numbers(m map[string]int64) string {
	parts := make([]string, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s=%d", name, m[name]))
	}
	return strings.Join(parts, " ")
}

// showHistory carries out show history KIND/NAME: the last decisions, oldest first.
func showHistory(p *player, args []string) (out []string, err error) {
	if err := need(args, 1, "show history KIND/NAME"); err != nil {
		return nil, err
	}
	_, u, err := p.object(args[0])
	if err != nil {
		return nil, err
	}
	if d := v1beta1.ParsePlacement(u.GetAnnotations()[v1beta1.PlacementAnnotation]); d != nil {
		for _, h := range slices.Backward(d.History) {
			out = append(out, strings.TrimSuffix(h.Cause+": "+h.Summary(), ": "))
		}
	}
	return out, nil
}

// showClusters carries out show clusters: their conditions and where they stand.
func showClusters(p *player, _ []string) (out []string, err error) {
	for _, m := range p.Members() {
		c := p.clusters.named(m.Name)
		if c == nil {
			out = append(out, m.Name+": has not joined")
			continue
		}
		line := fmt.Sprintf("%s: %s", m.Name, c.Phase())
		if c.Phase() == v1beta1.PhaseFailingBack {
			line += fmt.Sprintf(" %d%%", c.Status.Failover.Percent)
		}
		for _, condition := range c.Status.Conditions {
			line += fmt.Sprintf(" %s=%s", condition.Type, condition.Status)
			if condition.Type == v1beta1.ClusterReady && condition.Status != "True" || condition.Type == v1beta1.ClusterFailoverSuspended && condition.Status == "True" {
				line += "(" + condition.Reason + ")"
			}
		}
		out = append(out, line)
	}
	return out, nil
}

// showDNS carries out show dns: all records.
func showDNS(p *player, _ []string) (out []string, err error) {
	records, err := p.DNS.Records(p.ctx, zone)
	for _, r := range records {
		out = append(out, strings.Split(r.String(), "\n")...)
	}
	return out, err
}

// showWrites carries out show writes [members]: what the federation wrote since they were shown last, here and in members, or there only.
func showWrites(p *player, args []string) ([]string, error) {
	count := map[string]int{}
	for _, line := range p.Writes() {
		if len(args) == 0 || !strings.HasPrefix(line, "federation: ") {
			count[line]++
		}
	}
	out := []string{}
	for _, line := range slices.Sorted(maps.Keys(count)) {
		out = append(out, fmt.Sprintf("%d × %s", count[line], line))
	}
	if len(out) == 0 {
		out = append(out, "nothing")
	}
	return out, nil
}

// showEvents carries out show events: those since they were shown last, each once.
func showEvents(p *player, _ []string) (out []string, err error) {
	for _, e := range p.events.since(p.seen) {
		p.seen++
		line := fmt.Sprintf("%s %s %s: %s", e.kind, e.object, e.reason, withoutTimes.ReplaceAllString(e.message, "TIME"))
		if !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return out, nil
}

// expect carries out expect SUBJECT ARGUMENT OPERATOR NUMBER: fails the scenario where it is not so.
func expect(p *player, args []string) error {
	if err := need(args, 4, "expect ready|asked|moves KIND/NAME =|<=|>= NUMBER"); err != nil {
		return err
	}
	t, u, err := p.object(args[1])
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	got := 0
	switch args[0] {
	case "ready":
		p.mu.Lock()
		got = readyOf(p.Fleet, t.workload(), u, time.Now()).sum
		p.mu.Unlock()
	case "asked":
		for _, m := range p.Members() {
			if there := m.API.Get(t.GroupVersionResource, t.namespace, t.name); there != nil {
				got += replicasOf(there)
			}
		}
	case "moves":
		got = p.laws.moves.counts[u.GetUID()]
	default:
		return fmt.Errorf("nothing can be expected of %q", args[0])
	}
	if ok := map[string]bool{"=": got == n, "<=": got <= n, ">=": got >= n}[args[2]]; !ok {
		return fmt.Errorf("got %d", got)
	}
	return nil
}
