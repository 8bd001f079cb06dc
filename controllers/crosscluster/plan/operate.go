package plan

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"federation/apiserver/apis/federation/v1beta1"
	servicednsplan "federation/controllers/servicedns/plan"
)

// Input is what is known of one Service in one member.
type Input struct {
	// Member is the cluster's name.
	Member string
	// Federation is the value of v1beta1.ManagedByLabel.
	Federation string
	// Service is its copy in the member, or nil.
	Service *corev1.Service
	// Offers are what all clusters have of the Service, sorted by cluster.
	Offers []servicednsplan.Offer
	// Endpoints has, for offers of pods, what connected clusters say that they have of the Service, by cluster.
	Endpoints map[string]Endpoints
	// Away are the clusters that were connected, and are no more.
	Away map[string]bool
	// Have are our existing slices in the member for the Service.
	Have []*discoveryv1.EndpointSlice
}

// Verb is an operation on a slice.
type Verb string

// The writes to a member. An update carries the observed resource version, a delete the UID.
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

// Operate returns the writes that are missing in the member, sorted by slice name. New slices come before deletions, so
// that a Service whose clusters change is never without any.
func Operate(in Input) (operations []Operation) {
	want, kept := in.desired()
	return Compare(want, in.Have, kept)
}

// Compare returns the writes that make the slices of a member as wanted, by name, sorted as Operate has them. Those of the clusters in
// keep stay as they are. It uses want up.
func Compare(want map[string]*discoveryv1.EndpointSlice, all []*discoveryv1.EndpointSlice, keep map[string]bool) (operations []Operation) {
	var gone []Operation
	for _, have := range all {
		s := want[have.Name]
		delete(want, have.Name)
		switch {
		case keep[have.Labels[v1beta1.SourceClusterLabel]]:
		case s == nil:
			gone = append(gone, Operation{Delete, have})
		case !isAsDesired(s, have):
			s.ResourceVersion, s.UID = have.ResourceVersion, have.UID
			operations = append(operations, Operation{Update, s})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		operations = append(operations, Operation{Create, want[name]})
	}
	return append(operations, gone...)
}

// isAsDesired reports whether a slice is as desired. It ignores what others have added.
func isAsDesired(want, have *discoveryv1.EndpointSlice) bool {
	contains := func(have, want map[string]string) bool {
		for key, value := range want {
			if have[key] != value {
				return false
			}
		}
		return true
	}
	for _, label := range []string{corev1.LabelTopologyRegion, discoveryv1.LabelServiceName} { // who reads them cares that they are not there
		_, wanted := want.Labels[label]
		if _, had := have.Labels[label]; had != wanted {
			return false
		}
	}
	return contains(have.Labels, want.Labels) && contains(have.Annotations, want.Annotations) &&
		apiequality.Semantic.DeepEqual(want.OwnerReferences, have.OwnerReferences) &&
		apiequality.Semantic.DeepEqual(want.Endpoints, have.Endpoints) && apiequality.Semantic.DeepEqual(want.Ports, have.Ports)
}

// Ours reports whether a slice in a member was made by Operate.
func Ours(labels map[string]string) bool {
	return labels[discoveryv1.LabelManagedBy] == Manager && labels[v1beta1.RemoteServiceLabel] != ""
}
