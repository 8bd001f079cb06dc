package admission

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/networking"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/validation"
)

// NamesInDNS returns what DNS names are built from, or nil while that is unknown: then nothing is rejected, and an
// object without a name reports that in its condition.
type NamesInDNS func() *validation.DNSNames

// checkNames rejects objects that ask for names that DNS cannot have. Names that are stored already do not block
// changes.
func (p *Plugin) checkNames(a admission.Attributes) field.ErrorList {
	if p.names == nil || a.GetSubresource() != "" {
		return nil
	}
	names := p.names()
	if names == nil {
		return nil
	}
	switch object := a.GetObject().(type) {
	case *core.Service:
		errs := names.ValidateSettings(a.GetNamespace(), extraHosts(object), extraHosts(a.GetOldObject()), func(i int) *field.Path {
			return field.NewPath("metadata", "annotations").Key(v1beta1.DNSAnnotation).Child("hosts").Index(i)
		})
		old, _ := a.GetOldObject().(*core.Service)
		if object.Spec.Type != core.ServiceTypeLoadBalancer || old != nil && old.Spec.Type == core.ServiceTypeLoadBalancer {
			return errs
		}
		return append(errs, names.ValidateService(a.GetNamespace(), object.Name)...)
	case *v1beta1.PlacementPolicy:
		return names.ValidateSettings(a.GetNamespace(), policyHosts(object), policyHosts(a.GetOldObject()), func(i int) *field.Path {
			return field.NewPath("spec", "dns", "hosts").Index(i)
		})
	case *networking.Ingress:
		return names.ValidateHosts(a.GetNamespace(), hostsOf(object), hostsOf(a.GetOldObject()), func(i int) *field.Path {
			return field.NewPath("spec", "rules").Index(i).Child("host")
		})
	}
	return nil
}

// extraHosts returns the hosts in a Service's own DNS settings.
func extraHosts(object runtime.Object) []string {
	service, ok := object.(*core.Service)
	if !ok || service == nil || service.Annotations[v1beta1.DNSAnnotation] == "" {
		return nil
	}
	settings, errs := v1beta1.ParseDNSSettings(service.Annotations[v1beta1.DNSAnnotation], nil)
	if settings == nil || len(errs) > 0 {
		return nil // reported elsewhere
	}
	return settings.Hosts
}

// policyHosts returns the hosts in a policy's DNS settings.
func policyHosts(object runtime.Object) []string {
	policy, ok := object.(*v1beta1.PlacementPolicy)
	if !ok || policy == nil || policy.Spec.DNS == nil {
		return nil
	}
	return policy.Spec.DNS.Hosts
}

// hostsOf returns the host of each rule of an Ingress, or "".
func hostsOf(object runtime.Object) (hosts []string) {
	if ingress, ok := object.(*networking.Ingress); ok && ingress != nil {
		for _, rule := range ingress.Spec.Rules {
			hosts = append(hosts, rule.Host)
		}
	}
	return hosts
}
