package admission

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kubernetes/pkg/apis/apps"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/pki"
)

// What the federation decides, only it writes: kubectl replace leaves it out, and an exported manifest brings an old one.
func TestOnlyTheFederationWritesWhatItDecides(t *testing.T) {
	const decided, pasted = `{"clusters":{"east-a":3}}`, `{"clusters":{"west-a":9}}`
	for name, c := range map[string]struct {
		written, subresource, user string
		want                       string
		warned                     bool
	}{
		"left out":                   {"-", "", "", decided, false},
		"written back":               {decided, "", "", decided, false},
		"pasted":                     {pasted, "", "", decided, true},
		"pasted into the status":     {pasted, "status", "", decided, true},
		"emptied":                    {"", "", "", decided, true},
		"changed by the controllers": {pasted, "", pki.ControllersUser, pasted, false},
		"emptied by the controllers": {"", "", pki.ControllersUser, "", false},
		"taken off by the reports":   {"-", "status", pki.ControllersUser, "", false},
	} {
		for _, key := range v1beta1.DecidedAnnotations {
			t.Run(name+" "+key, func(t *testing.T) {
				old := &apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", Annotations: map[string]string{key: decided}}}
				object := &apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", Annotations: map[string]string{key: c.written}}}
				if c.written == "-" {
					object.Annotations = nil
				}
				warnings := admit(t, object, old, c.subresource, c.user)
				if got := object.Annotations[key]; got != c.want || (len(warnings) > 0) != c.warned {
					t.Errorf("%q with warnings %q, want %q", got, warnings, c.want)
				}
			})
		}
	}
}

// A new object is placed as its spec says, whatever its manifest was exported with.
func TestANewObjectBringsNoDecisionsAlong(t *testing.T) {
	for _, key := range v1beta1.DecidedAnnotations {
		object := &apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", Annotations: map[string]string{key: `{"clusters":{"west-a":6}}`, "team": "a"}}}
		warnings := admit(t, object, nil, "", "")
		if got, there := object.Annotations[key]; there || object.Annotations["team"] != "a" {
			t.Errorf("%s: %q is believed", key, got)
		}
		if len(warnings) != 1 || !strings.Contains(warnings[0], "metadata.annotations["+key+"]") {
			t.Errorf("%s: warnings %q", key, warnings)
		}
	}
}

func admit(t *testing.T, object, old *apps.ReplicaSet, subresource, by string) (warnings warned) {
	t.Helper()
	operation, options := admission.Update, runtime.Object(&metav1.UpdateOptions{})
	var was runtime.Object = old
	if old == nil {
		operation, options, was = admission.Create, &metav1.CreateOptions{}, nil
	}
	a := admission.NewAttributesRecord(object, was, apps.Kind("ReplicaSet").WithVersion("v1"), "shop", "web",
		schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}, subresource, operation, options, false, &user.DefaultInfo{Name: by})
	if err := New(policies{}, nil, nil).Admit(warning.WithWarningRecorder(t.Context(), &warnings), a, nil); err != nil {
		t.Fatal(err)
	}
	return warnings
}

// warned records warnings.
type warned []string

func (w *warned) AddWarning(_, text string) { *w = append(*w, text) }
