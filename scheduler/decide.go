package scheduler

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/scheduler/apportion"
)

// Decision is a placement with its causes.
type Decision struct {
	// Placement is the new content of the object's annotation, unless None or Wait.
	Placement v1beta1.Placement
	// None: the object should have no annotation. It goes to all clusters that its selector selects.
	None bool
	// Wait: it is not decided yet. The annotation stays as it is.
	Wait bool
	// Changed: the annotation must be written.
	Changed bool
	// Moved describes the changes from the last placement; "" if no number changed.
	Moved string
	// Cause describes why; "" if nothing changed.
	Cause string
	// TakesOver: clusters may have copies of an autoscaler that scales at the federation from now on. The placement must not be written
	// before its workload asks for as many replicas as these have made: see TakeOver.
	TakesOver bool
	// Unreferred: the object goes nowhere, because nothing refers to it.
	Unreferred bool
	// LookAgain is how long the decision holds if nothing else changes; 0 means for ever.
	LookAgain time.Duration
	// Policy is the name of the governing policy, or "".
	Policy string
	// Stranded is the number of replicas that should leave their clusters and stay, because no cluster can be used.
	Stranded int64
	// Notes are further remarks on the decision.
	Notes []string
	// Together are the clusters in which its policy keeps all that it governs; nil if it does not, or no cluster can be used.
	Together []string
	// Reasons has, by cluster, what made its number, in the order of application.
	Reasons map[string][]string
	// KeepsReplicas: some cluster keeps more than its minimum only because it had that before, as rebalance is off.
	KeepsReplicas bool
}

// Value returns the new placement annotation; "" means none.
func (d *Decision) Value() string {
	if d.None {
		return ""
	}
	return d.Placement.String()
}

// question is what is decided: where an object goes, in a world, at a time, by what it wants.
type question struct {
	o     *Object
	w     *World
	now   time.Time
	wants wants
}

// reasons has, by cluster, what made its number; nil: nobody asks for that.
type reasons map[string][]string

func (r reasons) add(cluster string, why ...string) {
	if r != nil && len(why) > 0 {
		r[cluster] = append(r[cluster], why...)
	}
}

// deciding is one decision in the making.
type deciding struct {
	*question
	seating seating // empty where clusters are not asked
	unmet   []string
	reasons reasons

	result Decision
}

// Decide places an object. It takes nothing from the world's ledger: see Take. If no cluster can be used, what is
// placed stays: there is nowhere to move it.
func Decide(o Object, w *World, now time.Time) Decision {
	q := &question{o: &o, w: w, now: now, wants: wantsOf(&o, w)}
	o.Divided = o.Divided || q.wants.policy != nil && o.hasSpecReplicas && !builtIn(&o) && q.wants.preferences != nil && q.wants.policy.Spec.ReplicaPreferences != nil
	d := &deciding{question: q}
	if !w.Terse {
		d.reasons = reasons{}
	}
	d.result = Decision{Policy: q.wants.policyName(), Reasons: d.reasons}
	switch {
	case o.Finished:
		d.keepFinishedJob()
		return d.result
	case q.scalesAtFederation():
		d.keepAtFederation()
	case !o.Divided && q.wants.policy == nil:
		d.decideUngoverned()
	default:
		d.decideAmongClusters()
	}
	d.conclude()
	return d.result
}

// keepFinishedJob leaves a finished Job where it ran, whatever happens to the clusters: placed elsewhere it would run again.
// It drops what was unschedulable.
func (d *deciding) keepFinishedJob() {
	last := d.o.Current
	if last == nil {
		d.result.Wait = true
		return
	}
	p := *last
	p.Overflow, p.Unschedulable = nil, 0
	d.result.Placement, d.result.Changed = p, !equalPlacements(last, &p)
	for name := range p.Clusters {
		d.reasons.add(name, "the Job is finished: it is not placed again")
	}
}

// decideAmongClusters finds what each cluster may have, and divides the object among them.
func (d *deciding) decideAmongClusters() {
	found, r := &d.seating, &d.result
	*found = seating{question: d.question, reasons: d.reasons}
	found.seatAll()
	n := &division{question: d.question, seats: found.seats, stranded: found.stranded, reasons: d.reasons}
	if d.o.Divided {
		n.divide()
	} else {
		n.place(apportion.Result{Plan: n.allClusters(d.o.lastReplicas())}, nil)
	}
	found.seats, d.unmet = n.seats, n.unmet
	r.Placement, r.KeepsReplicas, r.Stranded, r.LookAgain = n.placement, n.keepsReplicas, found.leavesNowhere, found.until
	if found.with != nil {
		r.Together = found.with.clusters
	}
}

// sendTo makes a plan the decision, whatever the clusters' state.
func (d *deciding) sendTo(plan map[string]int64) {
	n := &division{question: d.question}
	n.place(apportion.Result{Plan: plan}, nil)
	d.result.Placement = n.placement
}

// conclude compares the decision with the last one, and says what changed and why.
func (d *deciding) conclude() {
	r := &d.result
	if r.Wait {
		return
	}
	if r.None {
		r.Changed = d.o.Current != nil || d.o.Pending
		return
	}
	p := &r.Placement
	p.Notes = d.notes()
	r.Notes = slices.Concat(d.wants.notes, p.Notes)
	if d.seating.stranded && len(d.seating.seats) > 0 { // not written: it would be a write for each object while all clusters are lost
		r.Notes = append(r.Notes, "no cluster can be used: all stays where it is")
	}
	trimToFit(p)
	last := d.o.Current
	if last != nil && equalPlacements(last, p) {
		*p = *last
		return
	}
	r.Changed = true
	decision := changesBetween(last, p)
	r.Moved, r.Cause = decision.Summary(), d.cause()
	if last != nil {
		p.History = last.History
	}
	if r.Moved != "" {
		decision.At, decision.Cause = storedTime(d.now), r.Cause
		p.History = prependDecision(p.History, decision)
	}
}

const (
	// maxPlacement is the maximum size of a placement in bytes without its history, as long as there is something to
	// leave out.
	maxPlacement = 160 << 10
	// maxNotes is the maximum of notes.
	maxNotes = 10
	// tooLarge is the note on a placement without its overflow.
	tooLarge = "there are too many clusters to record the overflow of full ones: it is not requested"
)

// trimToFit leaves out what a placement can do without, if the object's annotations may have no room for it.
func trimToFit(p *v1beta1.Placement) {
	if more := len(p.Notes) - maxNotes; more > 0 {
		p.Notes = append(slices.Clone(p.Notes[:maxNotes]), fmt.Sprintf("and %d more", more))
	}
	if len(p.Overflow) > 0 && len(p.Clusters)+len(p.Overflow)+len(p.Home) > maxPlacement/100 && len(p.String()) > maxPlacement { // an entry has less than 100 bytes
		p.Overflow, p.Notes = nil, append(slices.Clone(p.Notes), tooLarge)
	}
}

// notes returns the remarks in the placement.
func (d *deciding) notes() []string {
	switch {
	case d.result.Unreferred:
		return []string{Unreferred}
	case d.result.Placement.Everywhere, d.result.Placement.AtFederation:
		return nil
	case len(d.seating.seats) == 0 && d.o.Follow == nil:
		return slices.Concat([]string{"no cluster is selected"}, d.notTogether(), d.unmet)
	}
	return slices.Concat(d.unmet, d.seating.left, d.notTogether(), d.unknownClusters())
}

// unknownClusters names the clusters of the preferences that have not joined, if replicas fit nowhere: it may be for a mistyped name.
func (d *deciding) unknownClusters() []string {
	if d.result.Placement.Unschedulable == 0 || d.wants.preferences == nil {
		return nil
	}
	return v1beta1.UnknownClusters(d.wants.preferences.Clusters, field.NewPath("preferences", "clusters"), d.w.Clusters)
}

// equalPlacements reports whether two placements are equal, apart from their history.
func equalPlacements(a, b *v1beta1.Placement) bool {
	return a.Everywhere == b.Everywhere && a.AtFederation == b.AtFederation && maps.Equal(a.Clusters, b.Clusters) && maps.Equal(a.Overflow, b.Overflow) && a.Unschedulable == b.Unschedulable &&
		a.Policy == b.Policy && maps.Equal(a.Home, b.Home) && slices.Equal(a.Notes, b.Notes)
}

func withoutZeros(from map[string]int64) map[string]int64 {
	out := make(map[string]int64, len(from))
	for name, n := range from {
		if n != 0 {
			out[name] = n
		}
	}
	return out
}

func sortedNames(of map[string]int64) []string { return slices.Sorted(maps.Keys(of)) }

func compareStrings(pairs ...string) int {
	for i := 0; i+1 < len(pairs); i += 2 {
		if c := cmp.Compare(pairs[i], pairs[i+1]); c != 0 {
			return c
		}
	}
	return 0
}
