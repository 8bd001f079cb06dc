package plan

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"federation/apiserver/apis/federation/v1beta1"
	servicedns "federation/controllers/servicedns/plan"
)

// Input is what is known of one Service in one member.
type Input struct {
	// Member is the cluster's name.
	Member string
	// Federation is the value of v1beta1.ManagedByLabel.
	Federation string
	// Service is its copy in the member; nil where it has none.
	Service *corev1.Service
	// Offers are what all clusters have of the Service, sorted by cluster.
	Offers []servicedns.Offer
	// Have are our slices in the member for the Service.
	Have []*discoveryv1.EndpointSlice
}

// Verb is what is done to a slice.
type Verb string

// The writes to a member. An update carries the resource version of what was seen, a delete its UID.
const (
	Create Verb = "create"
	Update Verb = "update"
	Delete Verb = "delete"
)

// Operation is one write.
type Operation struct {
	Verb
	Slice *discoveryv1.EndpointSlice
}

// Operate returns the writes that bring the member to what it is to hold, sorted by the names of slices: none where it holds
// that. New slices come before those that go, so that a Service whose clusters change is not without any.
func Operate(in Input) (operations []Operation) {
	want, kept := in.desired()
	var gone []Operation
	for _, have := range in.Have {
		s := want[have.Name]
		delete(want, have.Name)
		switch {
		case kept[have.Labels[v1beta1.SourceClusterLabel]]:
		case s == nil:
			gone = append(gone, Operation{Delete, have})
		case !same(s, have):
			s.ResourceVersion, s.UID = have.ResourceVersion, have.UID
			operations = append(operations, Operation{Update, s})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		operations = append(operations, Operation{Create, want[name]})
	}
	return append(operations, gone...)
}

// same reports whether a slice is as it is wanted. What others have put on it besides does not matter.
func same(want, have *discoveryv1.EndpointSlice) bool {
	contains := func(have, want map[string]string) bool {
		for key, value := range want {
			if have[key] != value {
				return false
			}
		}
		return true
	}
	_, region := want.Labels[corev1.LabelTopologyRegion]
	_, had := have.Labels[corev1.LabelTopologyRegion]
	return region == had && contains(have.Labels, want.Labels) && contains(have.Annotations, want.Annotations) &&
		apiequality.Semantic.DeepEqual(want.OwnerReferences, have.OwnerReferences) &&
		apiequality.Semantic.DeepEqual(want.Endpoints, have.Endpoints) && apiequality.Semantic.DeepEqual(want.Ports, have.Ports)
}

// Ours reports whether a slice in a member is one that Operate made.
func Ours(labels map[string]string) bool {
	return labels[discoveryv1.LabelManagedBy] == Manager && labels[v1beta1.RemoteServiceLabel] != ""
}
