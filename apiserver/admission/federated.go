// Package admission has the federation's own admission plugin for all federated kinds, beside Kubernetes' plugins.
//
// It adds the federation's finalizers to a new object, so that they are there before anything exists in a member. It rejects
// invalid annotations, so that their author sees a typo instead of a silent default. It keeps an object that a PlacementPolicy
// will govern from every cluster until it is placed. Objects of custom kinds are federated if a policy of their namespace
// selects them.
package admission

import (
	"context"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/dynamic"
	autoscalingclient "k8s.io/client-go/kubernetes/typed/autoscaling/v2"
	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	"k8s.io/component-base/tracing"
	"k8s.io/kubernetes/pkg/apis/core"

	"federation/apiserver/admission/plan"
	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/registry/federated"
	"federation/apiserver/validation"
)

// placeTime is how long it may take to place a new object without a line in the log.
const placeTime = 500 * time.Millisecond

// PluginName is the name of the plugin.
const PluginName = "FederatedObject"

// Policies are the PlacementPolicies by namespace.
type Policies interface {
	// In returns the policies of a namespace, in no order. They must not be changed.
	In(namespace string) []*v1beta1.PlacementPolicy
	// Synced reports whether the stored policies have been read.
	Synced() bool
}

// Plugin admits objects of federated kinds.
type Plugin struct {
	*admission.Handler
	policies   Policies
	place      Placer
	namespaces federated.NamespaceGetter
	objects    dynamic.Interface
	names      NamesInDNS
	authorizer authorizer.Authorizer                            // nil: nobody may restore decisions
	scalers    autoscalingclient.HorizontalPodAutoscalersGetter // nil: no warnings about them
	requests   certificatesclient.CertificateSigningRequestsGetter
	ingresses  networkinglisters.IngressLister // nil: hosts of other namespaces are not known

	// Clusters returns the joined clusters, or nil while they are unknown: then names are not checked. It may be nil.
	Clusters func() []*v1beta1.Cluster
	// CountClusters returns in how many clusters an object may be at once. It may be nil: then nobody is warned of many.
	CountClusters func(object *unstructured.Unstructured) int
	// TryOverrides may be nil: then policies are not tried.
	TryOverrides TryOverrides
	// OrphanByDefault: a delete that names no propagation policy leaves the copies, as in Federation v1.
	OrphanByDefault bool
}

var (
	_ admission.MutationInterface   = &Plugin{}
	_ admission.ValidationInterface = &Plugin{}
)

// New returns the plugin. place and names may be nil.
func New(policies Policies, place Placer, names NamesInDNS) *Plugin {
	p := &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete), policies: policies, place: place, names: names}
	p.SetReadyFunc(policies.Synced)
	return p
}

// Register makes the plugin known under its name.
func (p *Plugin) Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) { return p, nil })
}

// Admit adds finalizers and, if known, the placement to a new federated object. It rejects what only the federation
// decides from anybody else.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetOperation() == admission.Delete {
		return p.markCustom(ctx, a)
	}
	if err := p.checkCertificateRequest(ctx, a); err != nil { // before the API server checks its signature
		return err
	}
	if err := p.guardDecided(ctx, a); err != nil {
		return err
	}
	object, err := p.federatedObject(a)
	carryTrace(ctx, a, err == nil && object != nil)
	if err != nil || object == nil {
		return err
	}
	if a.GetOperation() != admission.Create {
		return nil
	}
	plan.Finalize(object)
	_, span := tracing.Start(ctx, "Place")
	defer span.End(placeTime)
	return p.placeNew(a, object)
}

// Validate rejects federated objects with invalid annotations, and those that ask for names that DNS cannot have, for
// hosts that other namespaces have, or for clusters that are not for them.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetOperation() == admission.Delete {
		return nil
	}
	p.warner().warn(ctx, a)
	if err := p.checkDrill(ctx, a); err != nil {
		return err
	}
	if err := p.guardPlacementDecision(ctx, a); err != nil {
		return err
	}
	if policy, ok := a.GetObject().(*v1beta1.PlacementPolicy); ok { // it is not federated
		if errs := slices.Concat(p.checkNames(a), p.checkClusters(a)); len(errs) > 0 {
			return errors.NewInvalid(a.GetKind().GroupKind(), policy.Name, errs)
		}
		return nil
	}
	object, err := p.federatedObject(a)
	if err != nil || object == nil {
		return err
	}
	hosts, err := p.checkHosts(ctx, a)
	if err != nil {
		return err
	}
	old := annotationsOf(a.GetOldObject())
	if errs := slices.Concat(hosts, validation.ValidateChangedAnnotations(object.GetAnnotations(), old), p.checkNames(a), p.checkClusters(a)); len(errs) > 0 {
		return errors.NewInvalid(a.GetKind().GroupKind(), object.GetName(), errs)
	}
	for _, text := range validation.WarnOfAnnotations(a.GetResource().GroupResource(), object.GetAnnotations(), old) {
		warning.AddWarning(ctx, "", text)
	}
	return nil
}

// federatedObject returns the object of a request, or nil if members have no copies of it.
func (p *Plugin) federatedObject(a admission.Attributes) (metav1.Object, error) {
	if sub := a.GetSubresource(); sub != "" && sub != "status" {
		return nil, nil // scale and the like carry other objects
	}
	if custom, ok := a.GetObject().(*unstructured.Unstructured); ok {
		return p.customObject(a, custom)
	}
	object, err := meta.Accessor(a.GetObject())
	if err != nil {
		return nil, nil
	}
	namespace := a.GetNamespace()
	if a.GetResource().Resource == "namespaces" {
		namespace = "" // requests for a namespace carry its own name there
	}
	if object.GetLabels()[v1beta1.RevisionOfLabel] != "" || !v1beta1.Federated(a.GetResource().GroupResource(), namespace, object.GetName(), secretType(a.GetObject())) {
		return nil, nil
	}
	return object, nil
}

// customObject returns an object of a custom kind if a policy selects it, or did when it was created.
func (p *Plugin) customObject(a admission.Attributes, object *unstructured.Unstructured) (metav1.Object, error) {
	if a.GetNamespace() == "" || v1beta1.OwnNamespace(a.GetNamespace()) {
		return nil, nil
	}
	if a.GetOperation() != admission.Create {
		if old, ok := a.GetOldObject().(*unstructured.Unstructured); ok && slices.Contains(old.GetFinalizers(), v1beta1.DeleteFromClustersFinalizer) {
			return object, nil
		}
		return nil, nil // selected afterwards: the report of propagation puts the finalizer on
	}
	policies, err := p.policiesOf(a)
	if err != nil || !plan.IsSelected(policies, a.GetKind().GroupKind(), object) {
		return nil, err
	}
	return object, nil
}

func secretType(object runtime.Object) corev1.SecretType {
	if s, ok := object.(*core.Secret); ok {
		return corev1.SecretType(s.Type)
	}
	return ""
}

func annotationsOf(object runtime.Object) map[string]string { return metaOf(object).GetAnnotations() }

func labelsOf(object runtime.Object) map[string]string { return metaOf(object).GetLabels() }

// metaOf returns an object's metadata; none of what has none.
func metaOf(object runtime.Object) metav1.Object {
	if object != nil {
		if accessor, err := meta.Accessor(object); err == nil {
			return accessor
		}
	}
	return &metav1.ObjectMeta{}
}
