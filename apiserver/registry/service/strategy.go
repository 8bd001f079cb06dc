package service

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/core"
	upstreamservice "k8s.io/kubernetes/pkg/registry/core/service"

	"federation/apiserver/apis/federation/v1beta1"
)

// upstream is the part of Kubernetes' own strategy for Services that we use.
type upstream interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
	rest.ResetFieldsStrategy
}

// strategy is Kubernetes' own, without what assumes an allocator.
type strategy struct {
	upstream
}

func newStrategy() strategy { return strategy{upstreamservice.Strategy} }

// PrepareForCreate resets what users cannot set, and gives cluster IPs.
func (s strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	service := obj.(*core.Service)
	pairClusterIPs(service, nil)
	s.upstream.PrepareForCreate(ctx, obj)
	giveClusterIPs(service, &core.Service{})
}

// PrepareForUpdate resets what users cannot set, drops what does not fit a new type, and gives cluster IPs.
func (s strategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	service, before := obj.(*core.Service), old.(*core.Service)
	pairClusterIPs(service, before)
	s.upstream.PrepareForUpdate(ctx, obj, old)
	giveClusterIPs(service, before)
}

// Validate checks a new Service.
func (s strategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	return withoutAllocated(s.upstream.Validate(ctx, obj))
}

// ValidateUpdate checks an update of a Service. Cluster IPs that the federation gives may change, because no member
// sees them.
func (s strategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	service, before := obj.(*core.Service), old.(*core.Service)
	if given(service, before) {
		before = before.DeepCopy()
		before.Spec.ClusterIP, before.Spec.ClusterIPs = service.Spec.ClusterIP, service.Spec.ClusterIPs
	}
	errs := withoutAllocated(s.upstream.ValidateUpdate(ctx, obj, before))
	return append(errs, immutableClusterIP(service, before)...)
}

// WarningsOnCreate warns of what is allowed but probably not meant.
func (s strategy) WarningsOnCreate(ctx context.Context, obj runtime.Object) []string {
	return append(s.upstream.WarningsOnCreate(ctx, obj), fixedClusterIP(obj.(*core.Service))...)
}

// WarningsOnUpdate warns of what is allowed but probably not meant.
func (s strategy) WarningsOnUpdate(ctx context.Context, obj, old runtime.Object) []string {
	return append(s.upstream.WarningsOnUpdate(ctx, obj, old), fixedClusterIP(obj.(*core.Service))...)
}

// withoutAllocated drops the error that a health check port is missing: each member allocates its own.
func withoutAllocated(errs field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(errs, func(e *field.Error) bool {
		return e.Type == field.ErrorTypeRequired && e.Field == "spec.healthCheckNodePort"
	})
}

// pairClusterIPs keeps clusterIP and clusterIPs, one the first of the other, together for clients that
// set only clusterIP. old is nil for a new Service.
func pairClusterIPs(s, old *core.Service) {
	spec := &s.Spec
	switch {
	case old == nil || len(spec.ClusterIPs) == 0:
		if spec.ClusterIP != "" && len(spec.ClusterIPs) == 0 {
			spec.ClusterIPs = []string{spec.ClusterIP}
		}
	case spec.ClusterIP != old.Spec.ClusterIP && slices.Equal(spec.ClusterIPs, old.Spec.ClusterIPs):
		spec.ClusterIPs = nil
		if spec.ClusterIP != "" {
			spec.ClusterIPs = []string{spec.ClusterIP}
		}
	}
}

// giveClusterIPs sets the cluster IPs that the federation gives a Service, or those that its user set before: omitting
// them does not change them. old is the zero Service for a new one.
func giveClusterIPs(s, old *core.Service) {
	if !v1beta1.Federated(core.Resource("services"), s.Namespace, s.Name, "") {
		return
	}
	switch {
	case s.Spec.Type == core.ServiceTypeExternalName:
		if given(s, old) {
			s.Spec.ClusterIP, s.Spec.ClusterIPs = "", nil
		}
	case s.Spec.ClusterIP == "" && old.Spec.ClusterIP != "" && !given(old, old):
		s.Spec.ClusterIP, s.Spec.ClusterIPs = old.Spec.ClusterIP, old.Spec.ClusterIPs
	case s.Spec.ClusterIP == "" || given(s, old):
		s.Spec.ClusterIP, s.Spec.ClusterIPs = "", ipsOf(s).ClusterIPs()
		if len(s.Spec.ClusterIPs) > 0 {
			s.Spec.ClusterIP = s.Spec.ClusterIPs[0]
		}
	}
}

// given reports whether a Service's cluster IPs are the federation's to give: also if there are none, as long as its
// user set none before.
func given(s, old *core.Service) bool {
	if s.Spec.ClusterIP == "" {
		return old.Spec.ClusterIP == "" || ipsOf(old).Given(old.Spec.ClusterIP)
	}
	return ipsOf(s).Given(s.Spec.ClusterIP) || ipsOf(old).Given(s.Spec.ClusterIP)
}

func ipsOf(s *core.Service) v1beta1.ServiceIPs {
	out := v1beta1.ServiceIPs{Namespace: s.Namespace, Name: s.Name, Annotations: s.Annotations, Policy: (*corev1.IPFamilyPolicy)(s.Spec.IPFamilyPolicy)}
	for _, f := range s.Spec.IPFamilies {
		out.Families = append(out.Families, corev1.IPFamily(f))
	}
	return out
}

// immutableClusterIP rejects a change of clusterIP, which every member would reject: it allocated one when it got the
// Service.
func immutableClusterIP(s, old *core.Service) field.ErrorList {
	if s.Spec.Type == core.ServiceTypeExternalName || old.Spec.Type == core.ServiceTypeExternalName || s.Spec.ClusterIP == old.Spec.ClusterIP {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "clusterIP"), s.Spec.ClusterIP, "may not change: delete the Service and create it again")}
}

func fixedClusterIP(s *core.Service) []string {
	if s.Spec.ClusterIP == "" || s.Spec.ClusterIP == core.ClusterIPNone || given(s, s) {
		return nil
	}
	return []string{"spec.clusterIP: " + s.Spec.ClusterIP + " goes to every member as it is; leave it out and each member allocates its own"}
}
