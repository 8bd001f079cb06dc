package admission

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/apps"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/pki"
)

// Whether a ReplicaSet is a revision shows when it is made, and never changes.
func TestRevisionsAreRevisionsForLife(t *testing.T) {
	owner := func(apiVersion, kind string, controls bool) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "web", UID: "u", Controller: &controls}}
	}
	revision, none := map[string]string{v1beta1.RevisionOfLabel: "Deployment"}, map[string]string(nil)
	for name, c := range map[string]struct {
		owners []metav1.OwnerReference
		labels map[string]string
		old    map[string]string
		update bool
		user   string
		want   string // the label; "!": refused
	}{
		"controlled by a Deployment":             {owners: owner("apps/v1", "Deployment", true), want: "Deployment"},
		"the same, made by the controllers":      {owners: owner("apps/v1", "Deployment", true), labels: revision, user: pki.ControllersUser, want: "Deployment"},
		"of a Deployment, which controls it not": {owners: owner("apps/v1", "Deployment", false)},
		"of somebody else's Deployment":          {owners: owner("example.com/v1", "Deployment", true)},
		"of an operator":                         {owners: owner("example.com/v1", "Shop", true)},
		"alone":                                  {},
		"alone, labelled":                        {labels: revision, want: "!"},
		"alone, labelled by an administrator":    {labels: revision, user: "admin", want: "!"},
		"alone, restored":                        {labels: revision, user: "backup", want: "Deployment"},
		"has lost its owner":                     {labels: revision, old: revision, update: true, want: "Deployment"},
		"the label is taken off":                 {labels: none, old: revision, update: true, want: "Deployment"},
		"the label is taken off by a backup":     {labels: none, old: revision, update: true, user: "backup", want: "Deployment"},
		"a federated one is given the label":     {labels: revision, old: none, update: true},
		"a federated one is given the owner":     {owners: owner("apps/v1", "Deployment", true), update: true},
	} {
		t.Run(name, func(t *testing.T) {
			object := &apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", Labels: c.labels, OwnerReferences: c.owners}}
			var old *apps.ReplicaSet
			if c.update {
				old = &apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", Labels: c.old}}
			}
			err := admit(t, object, old, "", c.user)
			got := object.Labels[v1beta1.RevisionOfLabel]
			if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "metadata.labels["+v1beta1.RevisionOfLabel+"]: ") {
				got = "!"
			} else if err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("the label is %q, want %q", got, c.want)
			}
			if federated := len(object.Finalizers) > 0; !c.update && got != "!" && federated == (got != "") {
				t.Errorf("the label is %q, the finalizers are %q", got, object.Finalizers)
			}
		})
	}
}
