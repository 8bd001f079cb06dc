package admission

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"

	"federation/apiserver/apis/federation/v1beta1"
)

// guardPlacementDecision lets nobody but the federation's controllers, and those who may restore decisions, write what the
// federation's PlacementDecisions say. Owners are not guarded: the garbage collector changes them. One that is deleted comes back.
func (p *Plugin) guardPlacementDecision(ctx context.Context, a admission.Attributes) error {
	if a.GetResource().GroupResource() != v1beta1.PlacementDecisionsResource.GroupResource() || a.GetSubresource() != "" || ofControllers(a) {
		return nil
	}
	is, _ := a.GetObject().(*unstructured.Unstructured)
	was, _ := a.GetOldObject().(*unstructured.Unstructured)
	if is == nil || !byFederation(is) && !byFederation(was) || was != nil && sameDecision(was, is) || p.mayRestore(ctx, a) {
		return nil
	}
	return admission.NewForbidden(a, fmt.Errorf("schedulerName: %q: only the federation writes such PlacementDecisions: they follow from where objects with the label %s go. Other schedulers have names of their own",
		v1beta1.SchedulerName, v1beta1.PlacementKeyLabel))
}

func byFederation(u *unstructured.Unstructured) bool {
	return u != nil && u.Object["schedulerName"] == v1beta1.SchedulerName
}

// sameDecision reports whether two versions say the same: scheduler, clusters, and the API's labels.
func sameDecision(a, b *unstructured.Unstructured) bool {
	said := func(u *unstructured.Unstructured) map[string]string {
		out := u.GetLabels()
		maps.DeleteFunc(out, func(key, _ string) bool { return !strings.HasPrefix(key, v1beta1.PlacementDecisionsResource.Group+"/") })
		return out
	}
	return a.Object["schedulerName"] == b.Object["schedulerName"] && maps.Equal(said(a), said(b)) && equality.Semantic.DeepEqual(a.Object["decisions"], b.Object["decisions"])
}
