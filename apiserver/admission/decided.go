package admission

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kubernetes/pkg/apis/core"

	"federation/apiserver/admission/plan"
	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/pki"
)

// guardDecided lets nobody but the federation's controllers write what they decide, and those who may restore it. It
// does so for objects of all kinds: a policy may make a custom kind federated later.
func (p *Plugin) guardDecided(ctx context.Context, a admission.Attributes) error {
	object, err := meta.Accessor(a.GetObject())
	if sub := a.GetSubresource(); err != nil || sub != "" && sub != "status" {
		return nil // scale and the like carry other objects
	}
	if err := p.markRevision(ctx, a, object); err != nil || ofControllers(a) || a.GetReinvocationContext().IsReinvoke() {
		return err // at a reinvocation the values of a new object are our own
	}
	old := annotationsOf(a.GetOldObject())
	for _, key := range v1beta1.DecidedAnnotations {
		value, written := object.GetAnnotations()[key]
		switch {
		case value == old[key]:
		case !written || isOutdated(a, object): // kubectl replace omits what no manifest has
			plan.Annotate(object, key, old[key])
		case !p.mayRestore(ctx, a):
			return admission.NewForbidden(a, fmt.Errorf("metadata.annotations[%s]: only the federation writes it: leave it out. Backups are restored by an account with the verb %s on %s.%s (cluster role federation-restore)",
				key, v1beta1.RestoreVerb, v1beta1.DecisionsResource, v1beta1.GroupName))
		}
	}
	keepClusterSetIPs(ctx, object, old)
	return nil
}

// isOutdated reports whether an update was made from an older version of the object. The storage will reject it as a
// conflict, which clients that then read the object again look for.
func isOutdated(a admission.Attributes, object metav1.Object) bool {
	if a.GetOperation() != admission.Update || object.GetResourceVersion() == "" {
		return false
	}
	old, err := meta.Accessor(a.GetOldObject())
	return err == nil && old.GetResourceVersion() != object.GetResourceVersion()
}

// mayRestore reports whether the user was given the verb by its name. A wildcard does not count: an administrator
// applies an exported manifest as unsuspectingly as anybody (ADR 100).
func (p *Plugin) mayRestore(ctx context.Context, a admission.Attributes) bool {
	return p.isAllowed(ctx, a, v1beta1.RestoreVerb, v1beta1.DecisionsResource) && !p.isAllowed(ctx, a, rbacv1.VerbAll, v1beta1.DecisionsResource)
}

// isAllowed reports whether the user may use a verb on a resource of our API group, for the name of the written object.
// Without an authorizer nobody may.
func (p *Plugin) isAllowed(ctx context.Context, a admission.Attributes, verb, resource string) bool {
	if p.authorizer == nil {
		return false
	}
	decision, _, err := p.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: a.GetUserInfo(), Verb: verb, Namespace: a.GetNamespace(), Name: a.GetName(), ResourceRequest: true,
		APIGroup: v1beta1.GroupName, APIVersion: v1beta1.SchemeGroupVersion.Version, Resource: resource,
	})
	return err == nil && decision == authorizer.DecisionAllow
}

// ofControllers reports whether the request comes from the federation's own controllers.
func ofControllers(a admission.Attributes) bool {
	return a.GetUserInfo() != nil && a.GetUserInfo().GetName() == pki.ControllersUser
}

// keepClusterSetIPs keeps a Service's addresses while its user asks for some, as every apply of the manifest does.
// Addresses that a user writes count as a new request: they may be another Service's by now. Invalid addresses are left
// for validation to reject.
func keepClusterSetIPs(ctx context.Context, object metav1.Object, old map[string]string) {
	const key = v1beta1.ClusterSetIPAnnotation
	value, asks := object.GetAnnotations()[key]
	if _, errs := v1beta1.ParseClusterSetIPs(value, nil); !asks || value == old[key] || len(errs) > 0 {
		return
	}
	stored := old[key]
	if stored == "" {
		stored = v1beta1.ClusterSetIPAuto
	}
	if value != v1beta1.ClusterSetIPAuto {
		warning.AddWarning(ctx, "", "metadata.annotations["+key+`]: ignored: only the federation writes addresses; write "`+v1beta1.ClusterSetIPAuto+`" in manifests`)
	}
	written := v1beta1.ServiceIPs{Annotations: map[string]string{key: value}}
	if service, ok := object.(*core.Service); ok && written.Given(service.Spec.ClusterIP) {
		service.Spec.ClusterIP, service.Spec.ClusterIPs = "", nil // it came with the annotation, from another Service's manifest
	}
	plan.Annotate(object, key, stored)
}
