package admission

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/pki"
)

// Only the federation, and who may restore decisions, writes what its PlacementDecisions say; other schedulers write their own.
func TestOnlyTheFederationWritesItsPlacementDecisions(t *testing.T) {
	decision := func(scheduler, cluster string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"schedulerName": scheduler, "decisions": []any{map[string]any{"clusterProfileRef": map[string]any{"name": cluster}}}}}
		u.SetNamespace("shop")
		u.SetName("web")
		u.SetLabels(map[string]string{v1beta1.DecisionKeyLabel: "web"})
		return u
	}
	const ours, other = v1beta1.SchedulerName, "another"
	owned := decision(ours, "east-a")
	owned.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: "web", UID: "u"}})
	labelled := decision(ours, "east-a")
	labelled.SetLabels(map[string]string{v1beta1.DecisionKeyLabel: "api"})
	marked := decision(ours, "east-a")
	marked.SetLabels(map[string]string{v1beta1.DecisionKeyLabel: "web", "team": "a"})
	for name, c := range map[string]struct {
		is, was *unstructured.Unstructured
		by      string
		refused bool
	}{
		"created by a user":            {is: decision(ours, "east-a"), by: "admin", refused: true},
		"created by the federation":    {is: decision(ours, "east-a"), by: pki.ControllersUser},
		"created by another scheduler": {is: decision(other, "east-a"), by: "admin"},
		"changed by a user":            {is: decision(ours, "west-a"), was: decision(ours, "east-a"), by: "admin", refused: true},
		"changed by the federation":    {is: decision(ours, "west-a"), was: decision(ours, "east-a"), by: pki.ControllersUser},
		"taken over":                   {is: decision(other, "east-a"), was: decision(ours, "east-a"), by: "admin", refused: true},
		"passed off as ours":           {is: decision(ours, "east-a"), was: decision(other, "east-a"), by: "admin", refused: true},
		"changed by its own scheduler": {is: decision(other, "west-a"), was: decision(other, "east-a"), by: "admin"},
		"under another key":            {is: labelled, was: decision(ours, "east-a"), by: "admin", refused: true},
		"orphaned by the collector":    {is: decision(ours, "east-a"), was: owned, by: "admin"},
		"with a label of a user's":     {is: marked, was: decision(ours, "east-a"), by: "admin"},
		"restored":                     {is: decision(ours, "west-a"), was: decision(ours, "east-a"), by: "backup"},
	} {
		t.Run(name, func(t *testing.T) {
			operation, old := admission.Update, runtime.Object(c.was)
			if c.was == nil {
				operation, old = admission.Create, nil
			}
			at := v1beta1.PlacementDecisionsResource
			a := admission.NewAttributesRecord(c.is, old, at.GroupVersion().WithKind("PlacementDecision"), "shop", "web", at, "", operation, nil, false, &user.DefaultInfo{Name: c.by})
			plugin := New(policies{}, nil, nil)
			plugin.SetAuthorizer(restorers{})
			err := plugin.Validate(t.Context(), a, nil)
			if c.refused != apierrors.IsForbidden(err) || !c.refused && err != nil || c.refused && !strings.Contains(err.Error(), ours) {
				t.Errorf("%v, refused: %t", err, c.refused)
			}
		})
	}
}
