package admission

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/kubernetes/pkg/apis/core"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/pki"
)

// Users request, the federation assigns. Applying the same manifest again removes nothing.
func TestAdmissionOfClusterSetIPs(t *testing.T) {
	service := func(value string) *core.Service {
		s := &core.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}}
		if value != "" {
			s.Annotations = map[string]string{v1beta1.ClusterSetIPAnnotation: value}
		}
		return s
	}
	const given = "10.200.0.7,fd00::7"
	for name, c := range map[string]struct {
		old, written, user string
		want               string // "!" if it is rejected
	}{
		"asked for":                   {"", "auto", "", "auto"},
		"asked for again":             {given, "auto", "", given},
		"written back":                {given, given, "", given},
		"taken off":                   {given, "", "", ""},
		"chosen by a user":            {"", "10.200.0.8", "", "auto"},
		"chosen in place of auto":     {"auto", "10.200.0.8", "", "auto"},
		"changed by a user":           {given, "10.200.0.8", "", given},
		"given":                       {"auto", given, pki.ControllersUser, given},
		"not understood":              {"", "yes", "", "!"},
		"not understood, though ours": {"auto", "10.200.0.7,10.200.0.8", pki.ControllersUser, "!"},
	} {
		t.Run(name, func(t *testing.T) {
			object, old := service(c.written), service(c.old)
			a := admission.NewAttributesRecord(object, old, core.Kind("Service").WithVersion("v1"), "shop", "web",
				schema.GroupVersionResource{Version: "v1", Resource: "services"}, "", admission.Update, &metav1.UpdateOptions{}, false, &user.DefaultInfo{Name: c.user})
			plugin := New(policies{}, nil, nil)
			if err := plugin.Admit(t.Context(), a, nil); err != nil {
				t.Fatal(err)
			}
			got := object.Annotations[v1beta1.ClusterSetIPAnnotation]
			if err := plugin.Validate(t.Context(), a, nil); err != nil {
				got = "!"
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// An exported manifest has the addresses of the original Service: none of them is the new one's own choice.
func TestClusterIPsOfAnExportedManifest(t *testing.T) {
	for ip, want := range map[string]string{"10.200.0.7": "", "10.96.0.1": "10.96.0.1"} {
		object := &core.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", Annotations: map[string]string{v1beta1.ClusterSetIPAnnotation: "10.200.0.7"}},
			Spec: core.ServiceSpec{ClusterIP: ip, ClusterIPs: []string{ip}}}
		a := admission.NewAttributesRecord(object, nil, core.Kind("Service").WithVersion("v1"), "shop", "web",
			schema.GroupVersionResource{Version: "v1", Resource: "services"}, "", admission.Create, &metav1.CreateOptions{}, false, &user.DefaultInfo{})
		if err := New(policies{}, nil, nil).Admit(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		if object.Spec.ClusterIP != want || (want == "") != (object.Spec.ClusterIPs == nil) {
			t.Errorf("%s: %q %q, want %q", ip, object.Spec.ClusterIP, object.Spec.ClusterIPs, want)
		}
	}
}
