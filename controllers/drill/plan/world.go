package plan

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"federation/apiserver/apis/federation/v1beta1"
)

// World is what a drill is decided from.
type World struct {
	Now      time.Time
	Clusters []*v1beta1.Cluster
	// Objects are those whose replicas are divided.
	Objects []Object
	// Providers are the DNS providers.
	Providers []v1beta1.DNSProvider
	// Records has the data of the record sets that the federation's server has, of those that the drill follows at least.
	Records map[Record][]string
	// TTL is how long resolvers may keep an answer.
	TTL time.Duration
	// Stopped says why no drill may run; "": they may.
	Stopped string
	// Other is the name of another drill that is under way, or that comes before this one; "": there is none.
	Other string
	// Isolated are the clusters that this process is cut off from by a drill, and DeadBehind those of them that answer nothing past that either.
	Isolated, DeadBehind []string
	// Blackholed are the clusters whose node agents have a Lease, renewed within the last 30 s, that has them drop what comes from outside.
	Blackholed []string
	// NodeAgents are how the node agents of clusters stand, by name; of those of a drill that waits to blackhole them.
	NodeAgents map[string]NodeAgents
	// Lease is who isolates whom, as the API has it.
	Lease Lease
	// Drills are all that there are.
	Drills []*v1beta1.FailoverDrill
	// Budgets are the PodDisruptionBudgets.
	Budgets []Budget
	// Clients are what the drill's probes have found.
	Clients []Client
	// Moved are the replicas that have left a cluster since this drill's fault, see v1beta1.DrillPrediction.
	Moved int64
	// Leader is the process that decides. SlowWrites are, for each of the last three times ten seconds, the time within which 99 of 100 of its writes at the
	// federation's API came back; 0: it made none.
	Leader     string
	SlowWrites [3]time.Duration
	// Review is what would happen if the scope were drained, or lost, or nil where Problem says why that is not known. Wanted while WantsReview says so.
	Review  *v1beta1.FailoverReviewStatus
	Problem string

	selects map[string][]selected // the budgets' selectors, by namespace
}

// NodeAgents are how the node agents of a cluster stand.
type NodeAgents struct {
	// Nodes are the ready nodes, and Able those of them whose agent can drop what comes from outside.
	Nodes, Able int
	// Problem says why it is not known; "": it is.
	Problem string
}

// Lease is the Lease by which drills isolate clusters.
type Lease struct {
	// Drill is the UID of the drill that holds it; "": there is none.
	Drill string
	// Renewed is when that was, by the clock of who did.
	Renewed time.Time
	// Blackhole: node agents are to drop what comes from outside.
	Blackhole bool
}

// Mark is what a Cluster's condition Drill is to be.
type Mark struct {
	// Cluster is the Cluster of the version by which it was judged.
	Cluster *v1beta1.Cluster
	// Condition, or nil: it is to go.
	Condition *v1beta1.ClusterCondition
}

// Object is a federated object whose replicas are divided.
type Object struct {
	// Name is KIND NAMESPACE/NAME.
	Name string
	// Counts: its replicas stay ready once they are.
	Counts bool
	// Asked are the replicas that it asks for, Ready those of them that are ready, in all clusters; 0 where it does not count.
	Asked, Ready int64
	// Placed has its replicas by cluster; Unplaced fit nowhere.
	Placed   map[string]int64
	Unplaced int64
	// Home has the replicas that it had by cluster before clusters were failed over; nil: Placed does.
	Home map[string]int64
	// Moving: not all clusters are as desired; since then, if that is known.
	Moving bool
	Since  time.Time

	namespace string
	pods      map[string]string // the labels of its pods
}

// Budget is a PodDisruptionBudget, and whose pods it is about.
type Budget struct {
	// Name is NAMESPACE/NAME.
	Name string
	// MinAvailable or MaxUnavailable is set.
	MinAvailable, MaxUnavailable *intstr.IntOrString
	// Objects are the indices, in the world's Objects, of those that have such pods.
	Objects []int
}

// Record is a record set: its name with the final dot, and its type.
type Record struct{ Name, Type string }

// Step is what is to be done next.
type Step struct {
	// Status is the drill's from now on. It is stored before anything else is done.
	Status v1beta1.FailoverDrillStatus
	// Changes are Clusters as they are to be, each of the version by which it was judged.
	Changes []*v1beta1.Cluster
	// Marks are conditions of Clusters as they are to be, written before Isolate is done.
	Marks []Mark
	// Isolate: the Lease is to be renewed for this drill; LetIn: without Blackhole. Lift: it is to go.
	Isolate, LetIn, Lift bool
	// Release: nothing is left to undo, and the finalizer may go.
	Release bool
	// LookAgain is when to look again whatever happens; 0: when something changes.
	LookAgain time.Duration
}

const (
	// reviewEvery is for how long a review counts at least while a drill waits, and reviewShare the part of the time that reviews may take.
	reviewEvery = 5 * time.Second
	reviewShare = 20
)

// ReviewHolds is for how long a review that took so long counts while a drill waits: in a large federation one takes seconds.
func ReviewHolds(took time.Duration) time.Duration { return max(reviewEvery, reviewShare*took) }

// WantsReview reports whether the next step depends on what would happen, and the last review counts no more, see ReviewHolds. What is predicted is reviewed at
// the last moment.
func WantsReview(d *v1beta1.FailoverDrill, holds, now time.Time) bool {
	if !waits(d) {
		return false
	}
	begins := d.Status.Phase == v1beta1.DrillBaseline && d.Status.PhaseSince != nil && now.Sub(d.Status.PhaseSince.Time) >= time.Duration(d.Spec.Baseline())*time.Second
	return begins || !now.Before(holds)
}

// waits reports whether a drill has taken nothing out yet.
func waits(d *v1beta1.FailoverDrill) bool {
	return d.Status.Phase == "" || d.Status.Phase == v1beta1.DrillPending || d.Status.Phase == v1beta1.DrillBaseline
}

// grace is how much longer than asked for a phase may take before somebody is to be told.
const grace = time.Minute

// Overdue reports whether a drill has had its clusters out, or has brought them back, for longer than it was to.
func Overdue(d *v1beta1.FailoverDrill, now time.Time) bool {
	if d.Status.PhaseSince == nil {
		return false
	}
	most := map[v1beta1.DrillPhase]time.Duration{
		v1beta1.DrillInjecting: injecting, v1beta1.DrillVerifying: 0,
		v1beta1.DrillHolding: time.Duration(d.Spec.Hold()) * time.Second, v1beta1.DrillRecovering: time.Duration(d.Spec.Recovery()) * time.Second,
	}
	may, takes := most[d.Status.Phase]
	return takes && now.Sub(d.Status.PhaseSince.Time) > may+grace
}

// Spec is what is asked of a review.
func Spec(d *v1beta1.FailoverDrill) v1beta1.FailoverReviewSpec {
	s := d.Spec.Scope
	return v1beta1.FailoverReviewSpec{Clusters: s.Clusters, Zones: s.Zones, Regions: s.Regions, Drained: !d.Spec.Method.Isolates()}
}

var drainTaint = corev1.Taint{Key: v1beta1.TaintDrain, Effect: corev1.TaintEffectNoExecute}

func tainted(c *v1beta1.Cluster) bool {
	return slices.ContainsFunc(c.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&drainTaint) })
}

// markOf is the note of a drain or drill on a cluster; nil where there is none that can be read.
func markOf(c *v1beta1.Cluster) *v1beta1.Drain {
	mark, err := v1beta1.ParseDrain(c.Annotations[v1beta1.DrainAnnotation])
	if err != nil {
		return nil
	}
	return mark
}

// bears reports whether a cluster is taken out by the drill of a UID.
func bears(c *v1beta1.Cluster, uid string) bool {
	mark := markOf(c)
	return mark != nil && mark.Drill == uid
}

// takenOut is a cluster as a drill takes it out of DNS.
func takenOut(c *v1beta1.Cluster, uid string, now time.Time) *v1beta1.Cluster {
	out := c.DeepCopy()
	mark := &v1beta1.Drain{Since: metav1.NewTime(now.UTC().Truncate(time.Second)), DNSWeight: c.Spec.DNSWeight, Drill: uid}
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	out.Annotations[v1beta1.DrainAnnotation] = mark.String()
	out.Spec.DNSWeight = new(int32)
	return out
}

// emptied is a cluster from which replicas are to go.
func emptied(c *v1beta1.Cluster) *v1beta1.Cluster {
	out := c.DeepCopy()
	out.Spec.Taints = append(out.Spec.Taints, drainTaint)
	return out
}

// refilled is a cluster to which replicas may go.
func refilled(c *v1beta1.Cluster) *v1beta1.Cluster {
	out := c.DeepCopy()
	if out.Spec.Taints = slices.DeleteFunc(out.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&drainTaint) }); len(out.Spec.Taints) == 0 {
		out.Spec.Taints = nil
	}
	return out
}

// broughtBack is a cluster as it was before the drill: its weight, unless somebody gave it another one meanwhile, and no note.
func broughtBack(c *v1beta1.Cluster) *v1beta1.Cluster {
	out := c.DeepCopy()
	if mark := markOf(c); mark != nil && c.DNSWeight() == 0 {
		out.Spec.DNSWeight = mark.DNSWeight
	}
	delete(out.Annotations, v1beta1.DrainAnnotation)
	return out
}

// Sweep returns the clusters, as they are to be, that are taken out by drills that there are no more. known are the UIDs of all drills.
func Sweep(clusters []*v1beta1.Cluster, known map[string]bool) (changes []*v1beta1.Cluster) {
	for _, c := range clusters {
		if mark := markOf(c); mark != nil && mark.Drill != "" && !known[mark.Drill] {
			changes = append(changes, broughtBack(refilled(c)))
		}
	}
	return changes
}

// Domain reports whether a drill took out just the clusters of a zone or region.
func Domain(s v1beta1.FailoverReadinessSpec, clusters []*v1beta1.Cluster, d *v1beta1.FailoverDrill) bool {
	var in []string
	for _, c := range clusters {
		whole := s.Region != "" && c.Status.Region == s.Region
		if s.Zone != "" {
			whole = len(c.Status.Zones) == 1 && c.Status.Region+"/"+c.Status.Zones[0] == s.Zone
		}
		if whole {
			in = append(in, c.Name)
		}
	}
	slices.Sort(in)
	return len(in) > 0 && slices.Equal(in, d.Status.Clusters)
}

// Last is what is noted of a drill that has ended, beside what was noted of the drills before it. nil: it took nothing out.
func Last(d *v1beta1.FailoverDrill, was *v1beta1.ReadinessDrill) *v1beta1.ReadinessDrill {
	if d.Status.Report == nil || d.Status.PhaseSince == nil {
		return nil
	}
	is := &v1beta1.ReadinessDrill{Name: d.Name, Method: string(d.Spec.Method), Outcome: string(d.Status.Outcome), FinishedAt: metav1.NewTime(d.Status.PhaseSince.Time)}
	switch {
	case d.Status.Outcome == v1beta1.DrillSucceeded:
		is.SucceededAt = &is.FinishedAt
	case was != nil:
		is.SucceededAt = was.SucceededAt
	}
	return is
}
