package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/drilltimes"
	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
)

// Preflight returns the first check that would block a drill now, and why, with its numbers. "" means that none would.
func Preflight(of *v1beta1.FailoverDrill, w *World) (reason, message string) {
	return newDrill(of, w).checkPreflight()
}

// checkPreflight returns the first failed check and why, with its numbers. "" means that the drill may begin.
func (r *run) checkPreflight() (reason, message string) {
	switch {
	case r.Stopped != "":
		return v1beta1.DrillNotStopped, "drills are stopped: " + r.Stopped
	case r.Other != "":
		return v1beta1.DrillAlone, "drill " + r.Other + " comes first"
	case r.Review == nil:
		return v1beta1.DrillScopeKnown, r.Problem
	case len(r.Review.Clusters) == len(r.Clusters):
		return v1beta1.DrillOthersServe, "the scope has all clusters: none is left to serve"
	}
	for _, c := range r.Clusters {
		in := slices.Contains(r.Review.Clusters, c.Name)
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
	for _, p := range r.Providers {
		if !p.Published {
			return v1beta1.DrillProvidersCurrent, fmt.Sprintf("DNS provider %s is behind: %s", p.Name, p.Message)
		}
	}
	for _, change := range r.Review.Records {
		if len(change.After) == 0 && !slices.ContainsFunc(r.Review.Records, func(c v1beta1.RecordChange) bool { return c.Name == change.Name && len(c.After) > 0 }) {
			return v1beta1.DrillNamesSurvive, fmt.Sprintf("%s would have no address", change.Name)
		}
	}
	if n, most := r.Review.ReplicasUnschedulable, r.Spec.Guardrails.Unplaced(); r.movesReplicas() && n > most {
		return v1beta1.DrillFits, fmt.Sprintf("%s would fit nowhere, at most %d may", phrase.Count(n, "replica"), most)
	}
	if r.isIsolation() {
		if reason, message := mayIsolate(&r.Spec, r.Review, r.NodeAgents); reason != "" {
			return reason, message
		}
	}
	if reason, message := r.atRest(); reason != "" {
		return reason, message
	}
	if against := r.againstWindows(); against != "" {
		return v1beta1.DrillInWindow, against
	}
	if r.Spec.Approval == v1beta1.DrillApprovalRequired && r.Status.Approved == nil {
		return v1beta1.DrillApproved, "needs the approval of somebody other than " + orNobody(r.Status.RequestedBy)
	}
	return "", ""
}

// againstWindows returns why the drill may not run from now on, or "".
func (r *run) againstWindows() string {
	windows, err := drilltimes.Parse(r.Spec.Windows)
	if err != nil {
		return "spec.windows: " + err.Error() // admission rejects those
	}
	takes := drilltimes.DurationOf(&r.Spec)
	if r.Status.Phase == v1beta1.DrillBaseline {
		takes -= min(r.phaseDuration(), time.Duration(r.Spec.Baseline())*time.Second)
	}
	return windows.Refuses(r.Now, r.Now.Add(takes))
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

// atRest returns the first failed check of those that require that nothing else happens.
func (r *run) atRest() (reason, message string) {
	if broken := r.brokenBudgets(r.predictedUnplaced(), r.unseen()); len(broken) > 0 {
		return v1beta1.DrillBudgets, broken[0]
	}
	if !slices.Contains(r.Spec.Allow, v1beta1.DrillQuiet) {
		if restless := changingObjects(r.Objects, r.Review.Clusters, r.Now); len(restless) > 0 {
			return v1beta1.DrillQuiet, fmt.Sprintf("%s not as desired: %s", phrase.Subject(int64(len(restless)), "object", "is", "are"), strings.Join(restless[:min(len(restless), 5)], ", "))
		}
	}
	if other, at := lastDrill(r.Drills, r.UID, r.Review.Clusters); !slices.Contains(r.Spec.Allow, v1beta1.DrillRested) && other != "" && r.Now.Sub(at) < rest {
		return v1beta1.DrillRested, fmt.Sprintf("drill %s took clusters of the scope out until %s ago; must be %s", other, r.Now.Sub(at).Round(time.Second), rest)
	}
	return "", ""
}

// changingObjects returns the objects that are changing: those with replicas in the scope that are not as desired, and all
// that have not been for long.
func changingObjects(objects []Object, scope []string, now time.Time) (names []string) {
	for i := range objects {
		o := &objects[i]
		in := slices.ContainsFunc(scope, func(c string) bool { return o.Placed[c] > 0 })
		if o.Moving && (in || !o.Since.IsZero() && now.Sub(o.Since) >= stuck) {
			names = append(names, o.Name)
		}
	}
	slices.Sort(names)
	return names
}

// lastDrill returns the drill that last took a cluster of the scope out, other than one of a UID, and when it ended; "" if there is none.
func lastDrill(drills []*v1beta1.FailoverDrill, except types.UID, scope []string) (name string, at time.Time) {
	for _, o := range drills {
		ended := o.Status.PhaseSince
		if o.UID == except || !o.IsFinished() || o.Status.Report == nil || ended == nil || !ended.After(at) {
			continue
		}
		if slices.ContainsFunc(o.Status.Clusters, func(c string) bool { return slices.Contains(scope, c) }) {
			name, at = o.Name, ended.Time
		}
	}
	return name, at
}

// predictedUnplaced returns the replicas that would fit nowhere, by object.
func (r *run) predictedUnplaced() map[string]int64 {
	unplaced := map[string]int64{}
	if r.movesReplicas() {
		for _, m := range r.Review.Moves {
			unplaced[m.Kind+" "+m.Namespace+"/"+m.Name] = m.Unschedulable
		}
	}
	return unplaced
}

// mayIsolate returns the first failed check of those for isolations only.
func mayIsolate(spec *v1beta1.FailoverDrillSpec, review *v1beta1.FailoverReviewStatus, agents map[string]NodeAgents) (reason, message string) {
	if review.SuspendedReason != "" && !slices.Contains(spec.Allow, v1beta1.DrillNotHeld) {
		return v1beta1.DrillNotHeld, "nothing would be failed over: " + review.SuspendedReason
	}
	if spec.Method == v1beta1.DrillBlackhole {
		if reason, message := mayBlackhole(review.Clusters, agents); reason != "" {
			return reason, message
		}
	}
	if slices.Contains(spec.Allow, v1beta1.DrillDoubleRunning) {
		return "", ""
	}
	for _, m := range review.Moves {
		leaves := slices.ContainsFunc(m.Clusters, func(c v1beta1.ReplicaChange) bool {
			return slices.Contains(review.Clusters, c.Cluster) && c.After < c.Before
		})
		if leaves && (m.Kind == "StatefulSet" || m.Kind == "Job") {
			return v1beta1.DrillDoubleRunning, fmt.Sprintf("%s %s/%s would run twice, in the scope and elsewhere", m.Kind, m.Namespace, m.Name)
		}
	}
	return "", ""
}

// mayBlackhole returns what prevents the node agents of the scope from dropping traffic from outside.
func mayBlackhole(scope []string, agents map[string]NodeAgents) (reason, message string) {
	for _, name := range scope {
		switch has, asked := agents[name]; {
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
