package v1beta1

import "k8s.io/apimachinery/pkg/runtime/schema"

// Names of SIG Multicluster's PlacementDecision API (KEP-5313).
const (
	// PlacementKeyLabel is a user's, on a federated object: where the object goes is then published as PlacementDecisions, which
	// have the label with the same value.
	PlacementKeyLabel = "multicluster.x-k8s.io/placement-key"
	// DecisionKeyLabel has the same value on all PlacementDecisions about one object.
	DecisionKeyLabel = "multicluster.x-k8s.io/decision-key"
	// DecisionIndexLabel has the position of a PlacementDecision among those about one object: 0, 1, …
	DecisionIndexLabel = "multicluster.x-k8s.io/decision-index"
	// SchedulerName is schedulerName in the federation's PlacementDecisions. Nobody else writes those.
	SchedulerName = "federation-scheduler"
)

// PlacementDecisionsResource is where PlacementDecisions are read and written.
var PlacementDecisionsResource = schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Resource: "placementdecisions"}
