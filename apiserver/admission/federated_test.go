package admission

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/pkg/apis/apps"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/pki"
)

// Only the federation, and an account with the verb for it, writes what the federation decides. kubectl replace omits
// it, and an update from an old version must end as a conflict.
func TestOnlyTheFederationWritesWhatItDecides(t *testing.T) {
	const decided, pasted = `{"clusters":{"east-a":3}}`, `{"clusters":{"west-a":9}}`
	for name, c := range map[string]struct {
		written, subresource, version, user string
		want                                string // "!" if it is rejected
	}{
		"left out":                   {"-", "", "", "", decided},
		"written back":               {decided, "", "7", "", decided},
		"pasted":                     {pasted, "", "", "", "!"},
		"pasted into this version":   {pasted, "", "7", "", "!"},
		"from an older version":      {pasted, "", "6", "", decided},
		"pasted into the status":     {pasted, "status", "", "", "!"},
		"emptied":                    {"", "", "", "", "!"},
		"pasted by an administrator": {pasted, "", "", "admin", "!"},
		"restored":                   {pasted, "", "", "backup", pasted},
		"restored into the status":   {pasted, "status", "", "backup", pasted},
		"left out by a backup":       {"-", "", "", "backup", decided},
		"changed by the controllers": {pasted, "", "", pki.ControllersUser, pasted},
		"emptied by the controllers": {"", "", "", pki.ControllersUser, ""},
		"taken off by the reports":   {"-", "status", "", pki.ControllersUser, ""},
		"an old one by the reports":  {pasted, "status", "6", pki.ControllersUser, pasted},
	} {
		for _, key := range v1beta1.DecidedAnnotations {
			t.Run(name+" "+key, func(t *testing.T) {
				old := &apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", ResourceVersion: "7", Annotations: map[string]string{key: decided}}}
				object := &apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", ResourceVersion: c.version, Annotations: map[string]string{key: c.written}}}
				if c.written == "-" {
					object.Annotations = nil
				}
				isWritten(t, admit(t, object, old, c.subresource, c.user), object, key, c.want)
			})
		}
	}
}

// Nor does a new object bring decisions along, unless it is restored.
func TestANewObjectBringsNoDecisionsAlong(t *testing.T) {
	const exported = `{"clusters":{"west-a":6}}`
	for _, key := range v1beta1.DecidedAnnotations {
		for user, want := range map[string]string{"": "!", "admin": "!", "backup": exported} {
			object := &apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", Annotations: map[string]string{key: exported}}}
			isWritten(t, admit(t, object, nil, "", user), object, key, want)
		}
	}
}

// isWritten fails the test unless an annotation is as wanted, or was rejected by name.
func isWritten(t *testing.T, err error, object *apps.ReplicaSet, key, want string) {
	t.Helper()
	got := object.Annotations[key]
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "metadata.annotations["+key+"]: ") {
		got = "!"
	} else if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("%q (%v), want %q", got, err, want)
	}
}

// restorers may restore: backup by that verb, admin by all verbs.
type restorers struct{}

// Authorize implements authorizer.Authorizer.
func (restorers) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	asked := strings.Join([]string{a.GetVerb(), a.GetResource() + "." + a.GetAPIGroup(), a.GetNamespace() + "/" + a.GetName()}, " ")
	if name := a.GetUser().GetName(); name == "admin" || name == "backup" && asked == "restore decisions.federation shop/web" {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func admit(t *testing.T, object, old *apps.ReplicaSet, subresource, by string) error {
	t.Helper()
	operation, options := admission.Update, runtime.Object(&metav1.UpdateOptions{})
	var was runtime.Object = old
	if old == nil {
		operation, options, was = admission.Create, &metav1.CreateOptions{}, nil
	}
	a := admission.NewAttributesRecord(object, was, apps.Kind("ReplicaSet").WithVersion("v1"), "shop", "web",
		schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}, subresource, operation, options, false, &user.DefaultInfo{Name: by})
	plugin := New(policies{}, nil, nil)
	plugin.SetAuthorizer(restorers{})
	return plugin.Admit(t.Context(), a, nil)
}

// warned records warnings.
type warned []string

func (w *warned) AddWarning(_, text string) { *w = append(*w, text) }
