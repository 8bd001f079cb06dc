package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/informers"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	"k8s.io/kubernetes/pkg/apis/networking"
	conversion "k8s.io/kubernetes/pkg/apis/networking/v1"

	"federation/apiserver/admission/plan"
	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/validation"
)

// SetExternalKubeInformerFactory gives the plugin the Ingresses of all namespaces.
func (p *Plugin) SetExternalKubeInformerFactory(shared informers.SharedInformerFactory) {
	of := shared.Networking().V1().Ingresses()
	synced := of.Informer().HasSynced
	p.useIngresses(of.Lister(), synced)
}

func (p *Plugin) useIngresses(all networkinglisters.IngressLister, synced func() bool) {
	p.ingresses = all
	p.SetReadyFunc(func() bool { return p.policies.Synced() && synced() })
}

// checkHosts rejects an Ingress of class federation that adds a host which another namespace's has (ADR 169). Who may read that one gets
// its name.
func (p *Plugin) checkHosts(ctx context.Context, a admission.Attributes) (errs field.ErrorList, err error) {
	object, ok := a.GetObject().(*networking.Ingress)
	if !ok || p.ingresses == nil || a.GetSubresource() != "" {
		return nil, nil
	}
	is, was := &networkingv1.Ingress{}, (*networkingv1.Ingress)(nil)
	if err := conversion.Convert_networking_Ingress_To_v1_Ingress(object, is, nil); err != nil {
		return nil, err
	}
	if is.Namespace = a.GetNamespace(); !v1beta1.IsBalanced(is) {
		return nil, nil
	}
	if old, ok := a.GetOldObject().(*networking.Ingress); ok && old != nil {
		was = &networkingv1.Ingress{}
		if err := conversion.Convert_networking_Ingress_To_v1_Ingress(old, was, nil); err != nil {
			return nil, err
		}
	}
	if !p.WaitForReady() {
		return nil, admission.NewForbidden(a, errors.New("the Ingresses of other namespaces are not known yet: try again in a moment"))
	}
	all, err := p.ingresses.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	names := &validation.DNSNames{}
	if p.names != nil {
		if known := p.names(); known != nil {
			names = known
		}
	}
	for _, t := range plan.TakenHosts(is, was, all, names.Grants, names.InZone) {
		errs = append(errs, field.Invalid(pathOfHost(is, t.Host), t.Host, fmt.Sprintf("must not be a host that another namespace has: %s asked for %s before; take another name, or ask who runs the federation for a DNSNameGrant",
			p.nameOfIngress(ctx, a, t.By), t.As)))
	}
	return errs, nil
}

// nameOfIngress names another namespace's Ingress to those who may read it.
func (p *Plugin) nameOfIngress(ctx context.Context, a admission.Attributes, i *networkingv1.Ingress) string {
	if p.authorizer != nil {
		decision, _, err := p.authorizer.Authorize(ctx, authorizer.AttributesRecord{
			User: a.GetUserInfo(), Verb: "get", Namespace: i.Namespace, Name: i.Name, ResourceRequest: true, APIGroup: networkingv1.GroupName, APIVersion: "v1", Resource: "ingresses",
		})
		if err == nil && decision == authorizer.DecisionAllow {
			return fmt.Sprintf("Ingress %s/%s", i.Namespace, i.Name)
		}
	}
	return "an Ingress there"
}

// pathOfHost returns where an Ingress asks for a host, which is in lower case.
func pathOfHost(i *networkingv1.Ingress, host string) *field.Path {
	same := func(h string) bool { return strings.ToLower(strings.TrimSuffix(h, ".")) == host }
	spec := field.NewPath("spec")
	if n := slices.IndexFunc(i.Spec.Rules, func(r networkingv1.IngressRule) bool { return same(r.Host) }); n >= 0 {
		return spec.Child("rules").Index(n).Child("host")
	}
	for n, t := range i.Spec.TLS {
		if at := slices.IndexFunc(t.Hosts, same); at >= 0 {
			return spec.Child("tls").Index(n).Child("hosts").Index(at)
		}
	}
	return spec
}
