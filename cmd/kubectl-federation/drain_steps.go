package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
)

// drainState returns a cluster's state between serving and drained.
func drainState(c *v1beta1.Cluster) string {
	words := []string{fmt.Sprintf("DNS weight %d", c.DNSWeight())}
	for _, t := range c.Spec.Taints {
		words = append(words, "taint "+t.ToString())
	}
	return strings.Join(words, ", ")
}

// progress prints the progress of a wait: changes at once and, while nothing changes, from time to time that it is
// still waiting.
type progress struct {
	out   io.Writer
	every time.Duration
	// last are the lines of the last change, and when that was; at is when something was shown.
	last        []string
	changed, at time.Time
}

func (p *progress) say(format string, args ...any) {
	tell(p.out, format+"\n", args...)
	p.last = nil
}

// update prints new lines, at most once a second. If there have been none for a while it prints what it waits for.
func (p *progress) update(cluster string, lines, waits []string) {
	now := time.Now()
	fresh := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return slices.Contains(p.last, l) })
	switch quiet := now.Sub(p.at); {
	case len(fresh) > 0 && quiet >= time.Second:
		tell(p.out, "%s\n", strings.Join(fresh, "\n"))
		p.last, p.changed, p.at = lines, now, now
	case len(fresh) == 0 && quiet >= p.every:
		tell(p.out, "%s: unchanged for %s, still waiting for %s\n", cluster, sinceText(p.changed, now), joinSome(waits))
		p.at = now
	}
}

func (p *progress) printLeft(cluster string, left []remainder, unknown string, why map[string]string) {
	if unknown != "" {
		p.update(cluster, append([]string{fmt.Sprintf("%s: what runs there is not known: %s", cluster, unknown)}, remainderLines("", left, why)[1:]...), append(remainderNames(left), "an answer"))
		return
	}
	var placed, ready int64
	for _, r := range left {
		placed += r.Placed
		ready += r.Ready
	}
	head := fmt.Sprintf("%s: %s of %s still there: %d placed, %d ready", cluster, countOf(thereSum(left), "replica"), countOf(int64(len(left)), "object"), placed, ready)
	p.update(cluster, remainderLines(head, left, why), remainderNames(left))
}

// printProviders shows the DNS providers that do not have the weight yet.
func (p *progress) printProviders(cluster string, all []dnsProvider) {
	lines, waits := []string{cluster + ": waiting until all DNS providers have the weight"}, []string{}
	for _, one := range all {
		if !one.Published {
			lines, waits = append(lines, fmt.Sprintf("  %s: %s", one.Name, one.Message)), append(waits, "DNS provider "+one.Name)
		}
	}
	p.update(cluster, lines, waits)
}

func (p *progress) printMissing(cluster string, missing []remainder, why map[string]string) {
	if len(missing) == 0 {
		return
	}
	var placed int64
	for _, r := range missing {
		placed += r.Placed
	}
	head := fmt.Sprintf("%s: %d of %s ready, of %s that are not", cluster, readySum(missing), countOf(placed, "replica"), countOf(int64(len(missing)), "object"))
	p.update(cluster, remainderLines(head, missing, why), remainderNames(missing))
}

// maxWaits bounds how many objects are shown one by one while something is waited for.
const maxWaits = 5

// remainderLines returns a head and the states of the first objects.
func remainderLines(head string, objects []remainder, why map[string]string) []string {
	out := []string{head}
	for _, r := range objects[:min(len(objects), maxWaits)] {
		there := fmt.Sprintf("%d there, %d ready", r.There, r.Ready)
		if r.Unsettled {
			there = "what is there cannot be read"
		}
		out = append(out, fmt.Sprintf("  %s: %d placed, %s%s", r.name(), r.Placed, there, prefixIfAny("; ", why[r.name()])))
	}
	if len(objects) > maxWaits {
		out = append(out, fmt.Sprintf("  and %d more", len(objects)-maxWaits))
	}
	return out
}

func prefixIfAny(with, s string) string {
	if s == "" {
		return ""
	}
	return with + s
}

// countOf returns "1 replica", "2 replicas".
func countOf(n int64, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// remainder is the state of one object in one cluster.
type remainder struct {
	Kind, Namespace, Name string
	// Placed are the replicas of the placement there, There those that the copy requests, Ready those of them that are
	// ready.
	Placed, There, Ready int64
	// Stays: its policy tolerates the taint of drain.
	Stays bool
	// Unsettled: the federation reports that the cluster is not as desired for it.
	Unsettled bool
	// Finished: it is a Job that has ended, as a whole or its copy. Nothing of it runs, or will be ready, any more.
	Finished bool
}

func (r remainder) name() string { return r.Kind + " " + r.Namespace + "/" + r.Name }

func remainderNames(of []remainder) (names []string) {
	for _, r := range of {
		names = append(names, r.name())
	}
	return names
}

func thereSum(all []remainder) (n int64) {
	for _, r := range all {
		n += max(r.There, r.Ready)
	}
	return n
}

func readySum(all []remainder) (n int64) {
	for _, r := range all {
		n += r.Ready
	}
	return n
}

// notGone returns what a drain waits for, the largest first.
func notGone(all []remainder) []remainder {
	all = slices.DeleteFunc(slices.Clone(all), func(r remainder) bool {
		return r.Stays || r.Finished || r.Placed == 0 && r.There == 0 && r.Ready == 0 && !r.Unsettled
	})
	largestFirst(all)
	return all
}

// notReady returns what an undrain waits for, the largest first.
func notReady(all []remainder) []remainder {
	all = slices.DeleteFunc(slices.Clone(all), func(r remainder) bool { return r.Finished || r.Ready >= r.Placed })
	largestFirst(all)
	return all
}

func largestFirst(all []remainder) {
	slices.SortFunc(all, func(a, b remainder) int {
		if n := max(b.Placed, b.There) - max(a.Placed, a.There); n != 0 {
			return int(n)
		}
		return strings.Compare(a.name(), b.name())
	})
}

// placementDigest identifies a placement.
func placementDigest(all []remainder) string {
	var words []string
	for _, r := range all {
		words = append(words, fmt.Sprint(r.name(), r.Placed))
	}
	slices.Sort(words)
	return strings.Join(words, ",")
}
