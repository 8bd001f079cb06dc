package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the name of our API group: the bare word.
const GroupName = "federation"

var (
	// SchemeGroupVersion is the group and version of the types in this package.
	SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1beta1"}
	// ClustersResource is the resource of Clusters.
	ClustersResource = SchemeGroupVersion.WithResource("clusters")
	// PoliciesResource is the resource of PlacementPolicies.
	PoliciesResource = SchemeGroupVersion.WithResource("placementpolicies")
	// FailoverReviewsResource is the resource of FailoverReviews.
	FailoverReviewsResource = SchemeGroupVersion.WithResource("failoverreviews")
	// PlacementReviewsResource is the resource of PlacementReviews.
	PlacementReviewsResource = SchemeGroupVersion.WithResource("placementreviews")
	// ReadinessResource is the resource of FailoverReadinesses.
	ReadinessResource = SchemeGroupVersion.WithResource("failoverreadinesses")
	// DNSNameGrantsResource is the resource of DNSNameGrants.
	DNSNameGrantsResource = SchemeGroupVersion.WithResource("dnsnamegrants")
	// FailoverDrillsResource is the resource of FailoverDrills.
	FailoverDrillsResource = SchemeGroupVersion.WithResource("failoverdrills")
	// DrillSchedulesResource is the resource of FailoverDrillSchedules.
	DrillSchedulesResource = SchemeGroupVersion.WithResource("failoverdrillschedules")

	// SchemeBuilder collects what AddToScheme adds.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme adds the types of this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &Cluster{}, &ClusterList{}, &ClusterProxyOptions{},
		&PlacementPolicy{}, &PlacementPolicyList{}, &FailoverReview{}, &PlacementReview{}, &FailoverReadiness{}, &FailoverReadinessList{}, &DNSNameGrant{}, &DNSNameGrantList{},
		&FailoverDrill{}, &FailoverDrillList{}, &FailoverDrillSchedule{}, &FailoverDrillScheduleList{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
