package admission

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/pki"
)

// keepDecided lets nobody but the federation's controllers write what they decide: others' values count for nothing, like
// a status in a manifest. It does so for objects of all kinds: a policy may make a custom kind federated later.
func keepDecided(ctx context.Context, a admission.Attributes) {
	object, err := meta.Accessor(a.GetObject())
	if err != nil || ofControllers(a) || a.GetReinvocationContext().IsReinvoke() {
		return // at a reinvocation the values of a new object are our own
	}
	if sub := a.GetSubresource(); sub != "" && sub != "status" {
		return // scale and the like carry other objects
	}
	old := annotationsOf(a.GetOldObject())
	for _, key := range v1beta1.DecidedAnnotations {
		keep(ctx, object, key, old)
	}
	keepClusterSetIPs(ctx, object, old)
}

// ofControllers reports whether the federation's own controllers ask.
func ofControllers(a admission.Attributes) bool {
	return a.GetUserInfo() != nil && a.GetUserInfo().GetName() == pki.ControllersUser
}

// keep gives an annotation the value that is stored, and none on a new object.
func keep(ctx context.Context, object metav1.Object, key string, old map[string]string) {
	stored := old[key]
	value, written := object.GetAnnotations()[key]
	if value == stored {
		return
	}
	if written {
		warning.AddWarning(ctx, "", "metadata.annotations["+key+"]: ignored: only the federation writes it; leave it out of manifests")
	}
	if stored != "" {
		annotate(object, key, stored)
		return
	}
	annotations := maps.Clone(object.GetAnnotations())
	delete(annotations, key)
	object.SetAnnotations(annotations)
}

// keepClusterSetIPs leaves a Service its addresses while its user asks for some, as every apply of the manifest does.
// Addresses that a user writes stand for a new request: the next one to be given may be another's by now. What is no
// address is left for validation to refuse.
func keepClusterSetIPs(ctx context.Context, object metav1.Object, old map[string]string) {
	const key = v1beta1.ClusterSetIPAnnotation
	value, written := object.GetAnnotations()[key]
	if _, errs := v1beta1.ParseClusterSetIPs(value, nil); !written || value == old[key] || len(errs) > 0 {
		return
	}
	stored := old[key]
	if stored == "" {
		stored = v1beta1.ClusterSetIPAuto
	}
	if value != v1beta1.ClusterSetIPAuto {
		warning.AddWarning(ctx, "", "metadata.annotations["+key+`]: ignored: only the federation writes addresses; write "`+v1beta1.ClusterSetIPAuto+`" in manifests`)
	}
	annotate(object, key, stored)
}
