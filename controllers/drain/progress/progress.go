// Package progress tells somebody who watches a drain, or its undoing, what has changed, in lines of text.
package progress

import (
	"fmt"
	"io"
	"slices"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
	drainplan "federation/controllers/drain/plan"
)

// Progress prints the progress of a drain, or of its undoing: changes at once and, while nothing changes, from time to
// time that it is still waiting.
type Progress struct {
	out   io.Writer
	every time.Duration
	// phase is that which was printed last, and until the end of its wait.
	phase v1beta1.DrainPhase
	until time.Time
	// ready are the replicas that were ready there when last heard of.
	ready int64
	// last are the lines of the last change, and when that was; at is when something was shown.
	last        []string
	changed, at time.Time
}

// New returns a Progress that prints to out.
func New(out io.Writer) *Progress {
	now := time.Now()
	return &Progress{out: out, every: 30 * time.Second, changed: now, at: now}
}

// Print prints what is new.
func (p *Progress) Print(c *v1beta1.Cluster, now time.Time) {
	s := c.Status.Drain
	if s == nil || (c.Spec.Drain == nil) != (s.Phase == v1beta1.DrainReturning) { // it says what was before
		p.update(c.Name, nil, []string{"the federation to begin"}, now)
		return
	}
	if s.Phase != p.phase {
		if line := p.phaseLine(c, now); line != "" {
			p.say("%s: %s", c.Name, line)
			p.at = now.Add(-time.Second) // what it waits for is news
		}
		p.phase = s.Phase
	}
	p.ready = s.Ready
	switch s.Phase {
	case v1beta1.DrainPublishing:
		p.update(c.Name, []string{c.Name + ": waiting until all DNS providers have the weight", "  " + s.Message}, []string{s.Message}, now)
	case v1beta1.DrainExpiring:
		if s.Until != nil && s.Until.Sub(p.until).Abs() > time.Second {
			p.until = s.Until.Time
			p.say("%s: waiting %s until no resolver has its addresses", c.Name, max(0, s.Until.Sub(now)).Round(time.Second))
		}
	case v1beta1.DrainEvicting, v1beta1.DrainReturning:
		p.printObjects(c.Name, s, now)
	case v1beta1.DrainBlocked:
		p.update(c.Name, []string{c.Name + ": does not go on: " + s.Message}, []string{"somebody"}, now)
	}
}

// phaseLine describes the phase of a cluster that has entered it.
func (p *Progress) phaseLine(c *v1beta1.Cluster, now time.Time) string {
	switch began := p.phase == "" && now.Sub(c.Status.Drain.Since.Time) < p.every; c.Status.Drain.Phase {
	case v1beta1.DrainPublishing, v1beta1.DrainExpiring:
		if began {
			return "weight in DNS is 0"
		}
	case v1beta1.DrainEvicting:
		return "tainted " + drainplan.Taint.ToString() + ": its replicas move"
	case v1beta1.DrainDrained:
		return "no replica is left there; cordoned"
	case v1beta1.DrainReturning:
		return "taints are off: replicas may be placed there"
	}
	return ""
}

// Finish prints the end of an undoing.
func (p *Progress) Finish(c *v1beta1.Cluster) {
	if p.phase == v1beta1.DrainReturning {
		p.say("%s: %s ready there; weight in DNS restored", c.Name, phrase.Count(p.ready, "replica"))
	}
}

func (p *Progress) say(format string, args ...any) {
	_, _ = fmt.Fprintf(p.out, format+"\n", args...)
	p.last = nil
}

// update prints new lines, at most once a second. If there have been none for a while it prints what it waits for.
func (p *Progress) update(cluster string, lines, waits []string, now time.Time) {
	fresh := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return slices.Contains(p.last, l) })
	switch quiet := now.Sub(p.at); {
	case len(fresh) > 0 && quiet >= time.Second:
		for _, line := range fresh {
			_, _ = fmt.Fprintf(p.out, "%s\n", line)
		}
		p.last, p.changed, p.at = lines, now, now
	case len(fresh) == 0 && quiet >= p.every:
		_, _ = fmt.Fprintf(p.out, "%s: unchanged for %s, still waiting for %s\n", cluster, phrase.Since(p.changed, now), phrase.Some(waits))
		p.at = now
	}
}

// printObjects prints the objects that are waited for.
func (p *Progress) printObjects(cluster string, s *v1beta1.ClusterDrainStatus, now time.Time) {
	head := fmt.Sprintf("%s: %s of %s still there: %d placed, %d ready", cluster, phrase.Count(s.Current, "replica"), phrase.Count(int64(s.Objects), "object"), s.Placed, s.Ready)
	if s.Phase == v1beta1.DrainReturning {
		head = fmt.Sprintf("%s: %d of %s ready; waiting for %s", cluster, s.Ready, phrase.Count(s.Placed, "replica"), phrase.Count(int64(s.Objects), "object"))
	}
	waits, lines := []string{}, []string{head}
	if s.Message != "" {
		waits, lines = append(waits, "an answer"), []string{cluster + ": " + s.Message}
	}
	if s.Objects == 0 && s.Message == "" {
		return // it is verified that it stays so
	}
	for i := range s.Waiting {
		o := &s.Waiting[i]
		name := fmt.Sprintf("%s %s/%s", o.Kind, o.Namespace, o.Name)
		waits = append(waits, name)
		lines = append(lines, fmt.Sprintf("  %s: %d placed, %d there, %d ready%s", name, o.Placed, o.Current, o.Ready, phrase.Prefixed("; ", o.Message)))
	}
	if more := int(s.Objects) - len(s.Waiting); more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", more))
	}
	p.update(cluster, lines, waits, now)
}
