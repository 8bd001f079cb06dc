package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"federation/apiserver/apis/drilltimes"
	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
)

// Preflight returns the first check that would block a drill now, and why, with its numbers. "" means that none would.
func Preflight(of *v1beta1.FailoverDrill, w *World) (reason, message string) {
	d := &drill{FailoverDrill: of, World: w, uid: string(of.UID), step: Step{Status: *of.Status.DeepCopy()}}
	return d.checkPreflight()
}

// checkPreflight returns the first failed check and why, with its numbers. "" means that the drill may begin.
func (d *drill) checkPreflight() (reason, message string) {
	switch {
	case d.Stopped != "":
		return v1beta1.DrillNotStopped, "drills are stopped: " + d.Stopped
	case d.Other != "":
		return v1beta1.DrillAlone, "drill " + d.Other + " comes first"
	case d.Review == nil:
		return v1beta1.DrillScopeKnown, d.Problem
	case len(d.Review.Clusters) == len(d.Clusters):
		return v1beta1.DrillOthersServe, "the scope has all clusters: none is left to serve"
	}
	for _, c := range d.Clusters {
		in := slices.Contains(d.Review.Clusters, c.Name)
		check := v1beta1.DrillOthersServe
		if in {
			check = v1beta1.DrillScopeServes
		}
		if !isServing(c) {
			return check, fmt.Sprintf("cluster %s: %s, phase %s; must be ready and Serving", c.Name, readyWord(c), c.Phase())
		}
		if in && (c.Annotations[v1beta1.DrainAnnotation] != "" || c.Drill() != nil || c.OutOfService() != "" || c.DNSWeight() == 0) {
			return check, fmt.Sprintf("cluster %s: out of service already: DNS weight %d, %s", c.Name, c.DNSWeight(), orNothing(c.OutOfService()))
		}
	}
	for _, p := range d.Providers {
		if !p.Published {
			return v1beta1.DrillProvidersCurrent, fmt.Sprintf("DNS provider %s is behind: %s", p.Name, p.Message)
		}
	}
	for _, change := range d.Review.Records {
		if len(change.After) == 0 && !slices.ContainsFunc(d.Review.Records, func(c v1beta1.RecordChange) bool { return c.Name == change.Name && len(c.After) > 0 }) {
			return v1beta1.DrillNamesSurvive, fmt.Sprintf("%s would have no address", change.Name)
		}
	}
	if n, most := d.Review.ReplicasUnschedulable, d.Spec.Guardrails.Unplaced(); d.movesReplicas() && n > most {
		return v1beta1.DrillFits, fmt.Sprintf("%s would fit nowhere, at most %d may", phrase.Count(n, "replica"), most)
	}
	if d.isIsolation() {
		if reason, message := d.mayIsolate(); reason != "" {
			return reason, message
		}
	}
	if reason, message := d.atRest(); reason != "" {
		return reason, message
	}
	if against := d.againstWindows(); against != "" {
		return v1beta1.DrillInWindow, against
	}
	if d.Spec.Approval == v1beta1.DrillApprovalRequired && d.Status.Approved == nil {
		return v1beta1.DrillApproved, "needs the approval of somebody other than " + orNobody(d.Status.RequestedBy)
	}
	return "", ""
}

// againstWindows returns why the drill may not run from now on, or "".
func (d *drill) againstWindows() string {
	windows, err := drilltimes.Parse(d.Spec.Windows)
	if err != nil {
		return "spec.windows: " + err.Error() // admission rejects those
	}
	takes := drilltimes.DurationOf(&d.Spec)
	if d.Status.Phase == v1beta1.DrillBaseline {
		takes -= min(d.phaseDuration(), time.Duration(d.Spec.Baseline())*time.Second)
	}
	return windows.Refuses(d.Now, d.Now.Add(takes))
}

func orNobody(user string) string {
	if user == "" {
		return "who made it"
	}
	return user
}

func readyWord(c *v1beta1.Cluster) string {
	if c.IsReady() {
		return "ready"
	}
	return "not ready"
}

func orNothing(s string) string {
	if s == "" {
		return "not cordoned"
	}
	return s
}

// ignoresCheck reports whether the drill ignores a failed check.
func (d *drill) ignoresCheck(check string) bool { return slices.Contains(d.Spec.Allow, check) }

// atRest returns the first failed check of those that require that nothing else happens.
func (d *drill) atRest() (reason, message string) {
	if broken := d.brokenBudgets(d.predictedUnplaced()); len(broken) > 0 {
		return v1beta1.DrillBudgets, broken[0]
	}
	if !d.ignoresCheck(v1beta1.DrillQuiet) {
		if restless := d.changingObjects(); len(restless) > 0 {
			return v1beta1.DrillQuiet, fmt.Sprintf("%s not as desired: %s", phrase.Subject(int64(len(restless)), "object", "is", "are"), strings.Join(restless[:min(len(restless), 5)], ", "))
		}
	}
	if other, at := d.lastDrill(); !d.ignoresCheck(v1beta1.DrillRested) && other != "" && d.Now.Sub(at) < rest {
		return v1beta1.DrillRested, fmt.Sprintf("drill %s took clusters of the scope out until %s ago; must be %s", other, d.Now.Sub(at).Round(time.Second), rest)
	}
	return "", ""
}

// changingObjects returns the objects that are changing: those with replicas in the scope that are not as desired, and all
// that have not been for long.
func (d *drill) changingObjects() (names []string) {
	for i := range d.Objects {
		o := &d.Objects[i]
		in := slices.ContainsFunc(d.Review.Clusters, func(c string) bool { return o.Placed[c] > 0 })
		if o.Moving && (in || !o.Since.IsZero() && d.Now.Sub(o.Since) >= stuck) {
			names = append(names, o.Name)
		}
	}
	slices.Sort(names)
	return names
}

// lastDrill returns the drill that last took a cluster of the scope out, and when it ended; "" if there is none.
func (d *drill) lastDrill() (name string, at time.Time) {
	for _, o := range d.Drills {
		ended := o.Status.PhaseSince
		if o.UID == d.UID || !o.IsFinished() || o.Status.Report == nil || ended == nil || !ended.After(at) {
			continue
		}
		if slices.ContainsFunc(o.Status.Clusters, func(c string) bool { return slices.Contains(d.Review.Clusters, c) }) {
			name, at = o.Name, ended.Time
		}
	}
	return name, at
}

// predictedUnplaced returns the replicas that would fit nowhere, by object.
func (d *drill) predictedUnplaced() map[string]int64 {
	unplaced := map[string]int64{}
	if d.movesReplicas() {
		for _, m := range d.Review.Moves {
			unplaced[m.Kind+" "+m.Namespace+"/"+m.Name] = m.Unschedulable
		}
	}
	return unplaced
}

// mayIsolate returns the first failed check of those for isolations only.
func (d *drill) mayIsolate() (reason, message string) {
	if d.Review.SuspendedReason != "" && !slices.Contains(d.Spec.Allow, v1beta1.DrillNotHeld) {
		return v1beta1.DrillNotHeld, "nothing would be failed over: " + d.Review.SuspendedReason
	}
	if reason, message := d.mayBlackhole(); reason != "" {
		return reason, message
	}
	if slices.Contains(d.Spec.Allow, v1beta1.DrillDoubleRunning) {
		return "", ""
	}
	for _, m := range d.Review.Moves {
		leaves := slices.ContainsFunc(m.Clusters, func(c v1beta1.ReplicaChange) bool {
			return slices.Contains(d.Review.Clusters, c.Cluster) && c.After < c.Before
		})
		if leaves && (m.Kind == "StatefulSet" || m.Kind == "Job") {
			return v1beta1.DrillDoubleRunning, fmt.Sprintf("%s %s/%s would run twice, in the scope and elsewhere", m.Kind, m.Namespace, m.Name)
		}
	}
	return "", ""
}

// mayBlackhole returns what prevents the node agents of the scope from dropping traffic from outside.
func (d *drill) mayBlackhole() (reason, message string) {
	if d.Spec.Method != v1beta1.DrillBlackhole {
		return "", ""
	}
	for _, name := range d.Review.Clusters {
		switch has, asked := d.NodeAgents[name]; {
		case !asked:
			return v1beta1.DrillNodeAgents, fmt.Sprintf("cluster %s: it is not known yet on which nodes an agent can blackhole", name)
		case has.Problem != "":
			return v1beta1.DrillNodeAgents, fmt.Sprintf("cluster %s: %s", name, has.Problem)
		case has.Nodes == 0 || has.Able < has.Nodes:
			return v1beta1.DrillNodeAgents, fmt.Sprintf("cluster %s: on %d of %d ready nodes is an agent ready that may blackhole; on each must be one: kubectl federation join --with-nodeagent --allow-blackhole",
				name, has.Able, has.Nodes)
		}
	}
	return "", ""
}
