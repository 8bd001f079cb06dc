package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// FailoverDrill takes clusters out of service on purpose, for a while, measures the effects, and undoes it by itself.
// One drill runs at a time; others wait. Deleting it ends and undoes it.
type FailoverDrill struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What to try. It cannot be changed.
	Spec FailoverDrillSpec `json:"spec"`
	// The course and the outcome; written by the federation.
	// +optional
	Status FailoverDrillStatus `json:"status,omitempty"`
}

// FailoverDrillSpec says what to try.
type FailoverDrillSpec struct {
	// The clusters that are taken out: all that any of the fields names when the drill begins.
	Scope FailoverDrillScope `json:"scope"`
	// Shift, Evacuate, Isolate or Blackhole.
	Method DrillMethod `json:"method"`
	// For Isolate and Blackhole: how.
	// +optional
	Isolate *DrillIsolate `json:"isolate,omitempty"`
	// Why, for those who see it.
	Reason string `json:"reason"`
	// How long all must be well before, from 5 to 3600 s; 60 if left out.
	// +optional
	BaselineSeconds *int32 `json:"baselineSeconds,omitempty"`
	// How long the clusters are out of service, from 10 to 14400 s; 600 if left out.
	// +optional
	HoldSeconds *int32 `json:"holdSeconds,omitempty"`
	// How long the way back may take, from 60 to 14400 s; 3600 if left out.
	// +optional
	RecoverySeconds *int32 `json:"recoverySeconds,omitempty"`
	// How long it may wait for its checks to hold before it begins, from 0 to 86400 s; 3600 if left out. Then it is
	// Blocked.
	// +optional
	StartingDeadlineSeconds *int32 `json:"startingDeadlineSeconds,omitempty"`
	// What decides whether it succeeds.
	// +optional
	Objectives FailoverDrillObjectives `json:"objectives,omitempty"`
	// What ends it early.
	// +optional
	Guardrails FailoverDrillGuardrails `json:"guardrails,omitempty"`
	// Clients that ask during the drill; at most 50.
	// +optional
	// +listType=map
	// +listMapKey=name
	Probes []DrillProbe `json:"probes,omitempty"`
	// Required: it waits until somebody other than its creator approves it. NotRequired, the default, needs the
	// permission to approve.
	// +optional
	Approval DrillApproval `json:"approval,omitempty"`
	// Checks that need not hold: DoubleRunning, NotHeld, Quiet, Rested.
	// +optional
	// +listType=set
	Allow []string `json:"allow,omitempty"`
	// When it may be under way; always if left out.
	// +optional
	Windows *DrillWindows `json:"windows,omitempty"`
}

// DrillApproval says whether a drill needs somebody's approval.
type DrillApproval string

const (
	// DrillApprovalRequired waits.
	DrillApprovalRequired DrillApproval = "Required"
	// DrillApprovalNotRequired does not.
	DrillApprovalNotRequired DrillApproval = "NotRequired"
)

// DrillIsolate says how the federation cuts itself off.
type DrillIsolate struct {
	// Silent, the default: nothing is answered. Refused: connections are refused.
	// +optional
	As IsolationMode `json:"as,omitempty"`
}

// IsolationMode is what the federation sees of clusters that it cuts itself off from.
type IsolationMode string

const (
	// IsolateSilent is a network that loses all.
	IsolateSilent IsolationMode = "Silent"
	// IsolateRefused is a machine on which nothing listens any more.
	IsolateRefused IsolationMode = "Refused"
)

// FailoverDrillScope names clusters. At least one field.
type FailoverDrillScope struct {
	// Names of clusters.
	// +optional
	// +listType=set
	Clusters []string `json:"clusters,omitempty"`
	// Zones, as REGION/ZONE or ZONE: clusters that have no nodes elsewhere.
	// +optional
	// +listType=set
	Zones []string `json:"zones,omitempty"`
	// Regions: all clusters in them.
	// +optional
	// +listType=set
	Regions []string `json:"regions,omitempty"`
}

// DrillMethod is how clusters are taken out.
type DrillMethod string

const (
	// DrillShift takes the clusters' addresses out of DNS. Replicas stay.
	DrillShift DrillMethod = "Shift"
	// DrillEvacuate does that, and then moves the replicas off, as kubectl federation drain does.
	DrillEvacuate DrillMethod = "Evacuate"
	// DrillIsolation cuts the federation's own connections to the clusters, so that it sees them as lost and fails them
	// over. Their workloads run on.
	DrillIsolation DrillMethod = "Isolate"
	// DrillBlackhole does that, and makes the clusters' node agents drop traffic to their Services from outside.
	DrillBlackhole DrillMethod = "Blackhole"
)

// Isolates reports whether the federation is cut off from the clusters.
func (m DrillMethod) Isolates() bool { return m == DrillIsolation || m == DrillBlackhole }

// FailoverDrillObjectives decide whether a drill succeeds. What is left out is not required.
type FailoverDrillObjectives struct {
	// The addresses are out of DNS that soon after the fault.
	// +optional
	OutOfDNSSeconds *int32 `json:"outOfDNSSeconds,omitempty"`
	// The clusters are judged lost that soon after the fault. For Isolate and Blackhole.
	// +optional
	DetectedSeconds *int32 `json:"detectedSeconds,omitempty"`
	// For Evacuate, Isolate and Blackhole: all that leaves the scope is ready in other clusters that soon after the fault.
	// +optional
	ReadyElsewhereSeconds *int32 `json:"readyElsewhereSeconds,omitempty"`
	// Of as many replicas as were placed in the scope, so many percent stay ready all the time, see guardrails.
	// +optional
	MinReadyPercent *int32 `json:"minReadyPercent,omitempty"`
	// Of a thousand questions of each probe so many may fail, from the fault on.
	// +optional
	MaxFailedPerMille *int32 `json:"maxFailedPerMille,omitempty"`
}

// FailoverDrillGuardrails end a drill early.
type FailoverDrillGuardrails struct {
	// Of the replicas that were placed in the scope, so many percent must stay ready, there or elsewhere; 95 if left out. With Isolate and Blackhole nobody
	// sees those in the scope: as many as that may be lost elsewhere, of the replicas that were there before.
	// +optional
	MinReadyPercent *int32 `json:"minReadyPercent,omitempty"`
	// So many replicas may fit nowhere: more keep it from beginning, and end it; 0 if left out.
	// +optional
	MaxUnplaced *int64 `json:"maxUnplaced,omitempty"`
	// Of a thousand questions that a probe with guard asks within windowSeconds so many may fail, and two in any case; 10 if left out.
	// +optional
	MaxFailedPerMille *int32 `json:"maxFailedPerMille,omitempty"`
	// From 5 to 600 s; 30 if left out.
	// +optional
	WindowSeconds *int32 `json:"windowSeconds,omitempty"`
}

// DrillPhase is the phase of a drill.
type DrillPhase string

const (
	// DrillPending waits for its checks to hold.
	DrillPending DrillPhase = "Pending"
	// DrillBaseline watches whether all is well, for spec.baselineSeconds.
	DrillBaseline DrillPhase = "Baseline"
	// DrillInjecting takes the clusters out.
	DrillInjecting DrillPhase = "Injecting"
	// DrillHolding keeps them out, for spec.holdSeconds.
	DrillHolding DrillPhase = "Holding"
	// DrillRecovering brings them back.
	DrillRecovering DrillPhase = "Recovering"
	// DrillVerifying looks for what was left behind.
	DrillVerifying DrillPhase = "Verifying"
	// DrillFinished is over.
	DrillFinished DrillPhase = "Finished"
)

// DrillOutcome is how a drill ended.
type DrillOutcome string

const (
	// DrillSucceeded held in full, met its objectives, and left nothing behind.
	DrillSucceeded DrillOutcome = "Succeeded"
	// DrillFailed missed an objective, hurt, or left something behind.
	DrillFailed DrillOutcome = "Failed"
	// DrillInterrupted ended early for a reason that says nothing about the clusters.
	DrillInterrupted DrillOutcome = "Interrupted"
	// DrillBlocked never began.
	DrillBlocked DrillOutcome = "Blocked"
)

// Reasons of drills: why one waits, or ended as it did.
const (
	DrillNotStopped       = "NotStopped"
	DrillAlone            = "Alone"
	DrillScopeKnown       = "ScopeKnown"
	DrillScopeServes      = "ScopeServes"
	DrillOthersServe      = "OthersServe"
	DrillProvidersCurrent = "ProvidersCurrent"
	DrillNamesSurvive     = "NamesSurvive"
	DrillFits             = "Fits"
	DrillNotHeld          = "NotHeld"
	DrillApproved         = "Approved"
	DrillInWindow         = "InWindow"
	DrillQuiet            = "Quiet"
	DrillRested           = "Rested"
	DrillBudgets          = "Budgets"
	DrillDoubleRunning    = "DoubleRunning"
	DrillNodeAgents       = "NodeAgents"
	DrillRealFailure      = "RealFailure"
	DrillReadyBelow       = "ReadyBelow"
	DrillUnplaced         = "Unplaced"
	DrillBudgetViolated   = "BudgetViolated"
	DrillUnpredicted      = "Unpredicted"
	DrillClientsFail      = "ClientsFail"
	DrillControlPlane     = "ControlPlane"
	DrillDNSBehind        = "DNSBehind"
	DrillStopped          = "Stopped"
	DrillOperator         = "Operator"
	DrillByHand           = "ByHand"
	DrillControllerLost   = "ControllerLost"
	DrillDeadline         = "Deadline"
	DrillObjectiveMissed  = "ObjectiveMissed"
	DrillLeftBehind       = "LeftBehind"
	DrillCompleted        = "Completed"
)

// FailoverDrillStatus is the course and the outcome of a drill.
type FailoverDrillStatus struct {
	// Where it stands.
	// +optional
	Phase DrillPhase `json:"phase,omitempty"`
	// When the phase began.
	// +optional
	PhaseSince *metav1.MicroTime `json:"phaseSince,omitempty"`
	// How it ended; empty while it has not.
	// +optional
	Outcome DrillOutcome `json:"outcome,omitempty"`
	// One word: what it waits for while Pending, why it goes back early, or why the outcome is what it is.
	// +optional
	Reason string `json:"reason,omitempty"`
	// The same for people, with its numbers.
	// +optional
	Message string `json:"message,omitempty"`
	// The clusters of the scope, as it was when the drill began, sorted.
	// +optional
	// +listType=atomic
	Clusters []string `json:"clusters,omitempty"`
	// Who created it, as the API server knows them.
	// +optional
	RequestedBy string `json:"requestedBy,omitempty"`
	// Who approved it.
	// +optional
	Approved *DrillDecision `json:"approved,omitempty"`
	// Who asked to abort it.
	// +optional
	Abort *DrillDecision `json:"abort,omitempty"`
	// The state of the clusters before: stored before anything is changed.
	// +optional
	// +listType=atomic
	Undo []DrillUndo `json:"undo,omitempty"`
	// The process that decides about it.
	// +optional
	Leader string `json:"leader,omitempty"`
	// How often another process has taken over since it began. The second time ends it.
	// +optional
	LeaderChanges int32 `json:"leaderChanges,omitempty"`
	// What was measured.
	// +optional
	Report *DrillReport `json:"report,omitempty"`
}

// DrillDecision is somebody's decision about a drill.
type DrillDecision struct {
	// Who, as the API server knows them.
	By string `json:"by"`
	// When.
	At metav1.Time `json:"at"`
	// Why.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// DrillUndo is the state of a cluster before a drill.
type DrillUndo struct {
	// Name of the cluster.
	Cluster string `json:"cluster"`
	// Its spec.dnsWeight; left out where there was none.
	// +optional
	DNSWeight *int32 `json:"dnsWeight,omitempty"`
}

// DrillReport is what was measured.
type DrillReport struct {
	// The named moments.
	// +optional
	Marks DrillMarks `json:"marks,omitempty"`
	// What the replicas did.
	// +optional
	Workloads DrillWorkloads `json:"workloads,omitempty"`
	// What the review said before, beside what was measured.
	// +optional
	Prediction DrillPrediction `json:"prediction,omitempty"`
	// What the probes found, from the fault on.
	// +optional
	// +listType=map
	// +listMapKey=name
	Probes []DrillProbeResult `json:"probes,omitempty"`
	// When that was noted.
	// +optional
	ProbesAt *metav1.MicroTime `json:"probesAt,omitempty"`
	// How it went, from the fault on: a sample where something had changed, at most 120. Where there would be more, each holds for longer.
	// +optional
	// +listType=atomic
	Samples []DrillSample `json:"samples,omitempty"`
	// The objectives, each with what was measured.
	// +optional
	// +listType=atomic
	Objectives []DrillObjective `json:"objectives,omitempty"`
	// Drills before this one, of the same clusters and method.
	// +optional
	Earlier *DrillEarlier `json:"earlier,omitempty"`
	// What is not as it was before, and has to do with the drill.
	// +optional
	// +listType=atomic
	LeftBehind []string `json:"leftBehind,omitempty"`
}

// DrillEarlier is how long it took in earlier drills of the same clusters and method until the marks came: those that are kept, the last 50 at most, and
// held in full.
type DrillEarlier struct {
	// How many there are.
	Runs int32 `json:"runs"`
	// By the name of the mark, in milliseconds: of three in four of them it came no later.
	// +optional
	P75Milliseconds map[string]int64 `json:"p75Milliseconds,omitempty"`
}

// DrillMarks are moments of a drill. Those that did not come are left out.
type DrillMarks struct {
	// The fault is in force: the weights of all clusters of the scope are 0, or the federation is cut off from all of them; with Blackhole their node
	// agents have a Lease to act by, too.
	// +optional
	Injected *metav1.MicroTime `json:"injected,omitempty"`
	// Isolate, Blackhole: all clusters of the scope are judged lost.
	// +optional
	Detected *metav1.MicroTime `json:"detected,omitempty"`
	// The servers answer with no address of the scope any more where another cluster serves, and all providers have that.
	// +optional
	OutOfDNS *metav1.MicroTime `json:"outOfDNS,omitempty"`
	// No resolver keeps an address of the scope any more, by the TTLs.
	// +optional
	LastUse *metav1.MicroTime `json:"lastUse,omitempty"`
	// Isolate, Blackhole: all clusters of the scope are failed over.
	// +optional
	Out *metav1.MicroTime `json:"out,omitempty"`
	// Evacuate, Isolate, Blackhole: nothing is placed in the scope any more except what stays there.
	// +optional
	Placed *metav1.MicroTime `json:"placed,omitempty"`
	// Evacuate, Isolate, Blackhole: all that was to leave the scope is ready elsewhere.
	// +optional
	ReadyElsewhere *metav1.MicroTime `json:"readyElsewhere,omitempty"`
	// The way back began.
	// +optional
	Recovering *metav1.MicroTime `json:"recovering,omitempty"`
	// What is placed in the scope again is ready.
	// +optional
	BackReady *metav1.MicroTime `json:"backReady,omitempty"`
	// The servers answer as before.
	// +optional
	BackInDNS *metav1.MicroTime `json:"backInDNS,omitempty"`
	// Isolate, Blackhole: when all clusters of the scope had a share of their replicas again, by percentage.
	// +optional
	Failback map[string]metav1.MicroTime `json:"failback,omitempty"`
	// Nothing of the drill is left.
	// +optional
	Clean *metav1.MicroTime `json:"clean,omitempty"`
}

// DrillWorkloads is what replicas did during a drill. Not ready is a replica that an object asks for and does not have ready in any cluster.
type DrillWorkloads struct {
	// Objects with replicas in the scope before.
	// +optional
	Objects int32 `json:"objects,omitempty"`
	// Replicas that were placed in the scope before.
	// +optional
	Replicas int64 `json:"replicas,omitempty"`
	// Replicas that were placed in other clusters before.
	// +optional
	Elsewhere int64 `json:"elsewhere,omitempty"`
	// Replicas that were not ready before, of all objects in all clusters.
	// +optional
	NotReadyBefore int64 `json:"notReadyBefore,omitempty"`
	// The most that were not ready since the fault.
	// +optional
	MostNotReady int64 `json:"mostNotReady,omitempty"`
	// When that was.
	// +optional
	MostAt *metav1.MicroTime `json:"mostAt,omitempty"`
	// Of as many replicas as were placed in the scope, so many percent stayed ready all the time, see guardrails.
	// +optional
	LeastReadyPercent int32 `json:"leastReadyPercent,omitempty"`
	// Since when a PodDisruptionBudget has been violated; left out while none is.
	// +optional
	BudgetViolatedSince *metav1.MicroTime `json:"budgetViolatedSince,omitempty"`
}

// DrillPrediction is what the review predicted, beside what was measured.
type DrillPrediction struct {
	// Replicas that would leave the scope.
	// +optional
	Replicas int64 `json:"replicas,omitempty"`
	// Replicas that left it.
	// +optional
	Measured int64 `json:"measured,omitempty"`
	// Replicas that left a cluster since the fault, of any cluster: those of objects that were scaled down are not counted.
	// +optional
	Moved int64 `json:"moved,omitempty"`
	// Record sets that would change.
	// +optional
	Records int32 `json:"records,omitempty"`
	// Those that were followed; at most 50.
	// +optional
	// +listType=atomic
	Followed []RecordChange `json:"followed,omitempty"`
	// Objects with replicas elsewhere than predicted; at most 100.
	// +optional
	// +listType=atomic
	Differences []string `json:"differences,omitempty"`
	// The moves that were predicted; at most 100.
	// +optional
	// +listType=atomic
	Moves []ReplicaMove `json:"moves,omitempty"`
}

// DrillSample is how a drill stood at a moment, and until the next sample.
type DrillSample struct {
	// How long after the fault, in milliseconds.
	AfterMilliseconds int64 `json:"afterMilliseconds"`
	// Replicas that are ready, of those that objects ask for, in all clusters that the federation sees.
	Ready int64 `json:"ready"`
	// Replicas that are placed in the scope.
	// +optional
	InScope int64 `json:"inScope,omitempty"`
	// Record sets, of those that are followed, that have an address of the scope.
	// +optional
	InDNS int32 `json:"inDNS,omitempty"`
	// Questions of all probes that have failed so far.
	// +optional
	Failed int64 `json:"failed,omitempty"`
}

// DrillObjective is an objective and what was measured.
type DrillObjective struct {
	// The field of spec.objectives.
	Name string `json:"name"`
	// What it asks for.
	Limit int32 `json:"limit"`
	// What was measured; left out where it never came.
	// +optional
	Measured *int32 `json:"measured,omitempty"`
	// Whether it is met.
	Met bool `json:"met"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// FailoverDrillList is a list of FailoverDrills.
type FailoverDrillList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// The drills.
	Items []FailoverDrill `json:"items"`
}

const (
	// ClusterDrill is a condition that is True while a drill has cut the federation off from the cluster, and until that is undone. The reason
	// is ReasonIsolated, or ReasonIsolationAborted.
	ClusterDrill ClusterConditionType = "Drill"
	// ReasonIsolated: the cluster is judged as lost, and other clusters as if it did not exist.
	ReasonIsolated = "Isolated"
	// ReasonIsolationAborted: as soon as the cluster is ready it serves again.
	ReasonIsolationAborted = "IsolationAborted"

	// DrillLease is the name of the Lease, in FederationNamespace, that isolates clusters: as long as somebody renews
	// it. In a member it makes the node agents drop traffic to Services from outside.
	DrillLease = "failover-drill"
	// NodeAgentName is the name of the node agent's DaemonSet, and the value of its pods' label app. BlackholeFlag is its flag that names that Lease.
	NodeAgentName = "federation-nodeagent"
	BlackholeFlag = "--blackhole-lease"
	// IsolationAnnotation, on that Lease, has the isolated clusters: an Isolation as JSON.
	IsolationAnnotation = "federation.kubernetes.io/isolation"
)

// Isolation says which clusters the federation is to cut itself off from, and how.
// +k8s:deepcopy-gen=false
// +k8s:openapi-gen=false
type Isolation struct {
	As       IsolationMode `json:"as"`
	Clusters []string      `json:"clusters"`
	// Blackhole: the Lease of the clusters' node agents must be renewed, too.
	Blackhole bool `json:"blackhole,omitempty"`
}

const (
	// DrillFinalizer keeps a FailoverDrill until it is undone.
	DrillFinalizer = "federation.kubernetes.io/drill"
	// StopDrillsAnnotation, on the namespace FederationNamespace, ends all drills and blocks others. Its value says
	// why.
	StopDrillsAnnotation = "federation.kubernetes.io/stop-drills"
)

// IsFinished reports whether a drill has ended.
func (d *FailoverDrill) IsFinished() bool { return d.Status.Phase == DrillFinished }

// UnderWay reports whether a drill has begun and not ended.
func (d *FailoverDrill) UnderWay() bool {
	return d.Status.Phase != "" && d.Status.Phase != DrillPending && d.Status.Phase != DrillFinished
}

func orDefault[T any](value *T, without T) T {
	if value == nil {
		return without
	}
	return *value
}

// Baseline returns how long all must be well before, in seconds.
func (s *FailoverDrillSpec) Baseline() int32 { return orDefault(s.BaselineSeconds, 60) }

// Hold returns how long the clusters are out of service, in seconds.
func (s *FailoverDrillSpec) Hold() int32 { return orDefault(s.HoldSeconds, 600) }

// Recovery returns how long the way back may take, in seconds.
func (s *FailoverDrillSpec) Recovery() int32 { return orDefault(s.RecoverySeconds, 3600) }

// StartingDeadline returns how long it may wait before it begins, in seconds.
func (s *FailoverDrillSpec) StartingDeadline() int32 {
	return orDefault(s.StartingDeadlineSeconds, 3600)
}

// MinReady returns how many percent of the scope's replicas must stay ready.
func (g *FailoverDrillGuardrails) MinReady() int32 { return orDefault(g.MinReadyPercent, 95) }

// Unplaced returns how many replicas may fit nowhere.
func (g *FailoverDrillGuardrails) Unplaced() int64 { return orDefault(g.MaxUnplaced, 0) }

// IsolationMode returns what the federation sees of clusters that it cuts itself off from.
func (s *FailoverDrillSpec) IsolationMode() IsolationMode {
	if s.Isolate == nil || s.Isolate.As == "" {
		return IsolateSilent
	}
	return s.Isolate.As
}

// Drill returns the condition that a drill has cut the federation off from the cluster, or nil.
func (c *Cluster) Drill() *ClusterCondition {
	if is := c.Condition(ClusterDrill); is != nil && is.Status == corev1.ConditionTrue {
		return is
	}
	return nil
}
