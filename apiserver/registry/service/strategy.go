package service

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/core"
	upstreamservice "k8s.io/kubernetes/pkg/registry/core/service"
)

// upstream is what we need of Kubernetes' own strategy for Services.
type upstream interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
	rest.ResetFieldsStrategy
}

// strategy is Kubernetes' own, less what supposes that somebody allocates.
type strategy struct {
	upstream
}

func newStrategy() strategy { return strategy{upstreamservice.Strategy} }

// PrepareForCreate resets what users cannot set.
func (s strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	pairClusterIPs(obj.(*core.Service), nil)
	s.upstream.PrepareForCreate(ctx, obj)
}

// PrepareForUpdate resets what users cannot set, and drops what does not fit a new type.
func (s strategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	pairClusterIPs(obj.(*core.Service), old.(*core.Service))
	s.upstream.PrepareForUpdate(ctx, obj, old)
}

// Validate checks a new Service.
func (s strategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	return withoutAllocated(s.upstream.Validate(ctx, obj))
}

// ValidateUpdate checks a change of a Service.
func (s strategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	errs := withoutAllocated(s.upstream.ValidateUpdate(ctx, obj, old))
	return append(errs, immutableClusterIP(obj.(*core.Service), old.(*core.Service))...)
}

// WarningsOnCreate tells of what is allowed and hardly meant.
func (s strategy) WarningsOnCreate(ctx context.Context, obj runtime.Object) []string {
	return append(s.upstream.WarningsOnCreate(ctx, obj), fixedClusterIP(obj.(*core.Service))...)
}

// WarningsOnUpdate tells of what is allowed and hardly meant.
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

// immutableClusterIP refuses a change of clusterIP, which every member would refuse: it allocated one
// when it got the Service.
func immutableClusterIP(s, old *core.Service) field.ErrorList {
	if s.Spec.Type == core.ServiceTypeExternalName || old.Spec.Type == core.ServiceTypeExternalName || s.Spec.ClusterIP == old.Spec.ClusterIP {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "clusterIP"), s.Spec.ClusterIP, "may not change: delete the Service and create it again")}
}

func fixedClusterIP(s *core.Service) []string {
	if s.Spec.ClusterIP == "" || s.Spec.ClusterIP == core.ClusterIPNone {
		return nil
	}
	return []string{"spec.clusterIP: " + s.Spec.ClusterIP + " goes to every member as it is; leave it out and each member allocates its own"}
}
