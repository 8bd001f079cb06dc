// Package install adds the group "federation" to a scheme, so that an apiserver can serve it.
//
// The Go types of v1beta1 are registered as the internal version too: a request is decoded, stored
// and answered without a conversion.
package install

import (
	"net/url"

	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"federation/apiserver/apis/federation/v1beta1"
)

// Install adds the group to a scheme.
func Install(scheme *runtime.Scheme) error {
	internal := schema.GroupVersion{Group: v1beta1.GroupName, Version: runtime.APIVersionInternal}
	scheme.AddKnownTypes(internal, &v1beta1.Cluster{}, &v1beta1.ClusterList{}, &v1beta1.ClusterProxyOptions{},
		&v1beta1.PlacementPolicy{}, &v1beta1.PlacementPolicyList{}, &v1beta1.FailoverReview{}, &v1beta1.PlacementReview{},
		&v1beta1.FailoverReadiness{}, &v1beta1.FailoverReadinessList{}, &v1beta1.DNSNameGrant{}, &v1beta1.DNSNameGrantList{},
		&v1beta1.FailoverDrill{}, &v1beta1.FailoverDrillList{}, &v1beta1.FailoverDrillSchedule{}, &v1beta1.FailoverDrillScheduleList{})
	if err := v1beta1.AddToScheme(scheme); err != nil {
		return err
	}
	if err := scheme.AddConversionFunc((*url.Values)(nil), (*v1beta1.ClusterProxyOptions)(nil), proxyOptions); err != nil {
		return err
	}
	return scheme.SetVersionPriority(v1beta1.SchemeGroupVersion)
}

// proxyOptions reads the options of clusters/NAME/proxy from the query of its URL.
func proxyOptions(from, to any, _ conversion.Scope) error {
	to.(*v1beta1.ClusterProxyOptions).Path = from.(*url.Values).Get("path")
	return nil
}
