package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"federation/clusterregistry/join"
	"federation/clusterregistry/join/addons"
)

// With an image the agent is installed, for this cluster and this account, with a token that is stored at the federation; without one nothing is.
func TestAgentAddToJoin(t *testing.T) {
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "fed-uid"}}
	config := &rest.Config{Host: "https://fed:6443", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca")}}
	for image, want := range map[string][]string{
		"": nil,
		"registry.example.com/agent:v1": {
			"ConfigMap federation-agent", "Deployment federation-agent", "NetworkPolicy federation-agent", "Role federation-agent", "RoleBinding federation-agent",
			"Secret federation-agent-bootstrap", "Secret federation-agent-certificate", "ServiceAccount federation-agent",
		},
	} {
		core, r := fake.NewClientset(system), &join.Request{Name: "east-a"}
		a := &agent{pull: true, Agent: addons.Agent{Image: image}}
		if err := a.addToJoin(t.Context(), config, core, r); err != nil {
			t.Fatal(err)
		}
		var got []string
		var text strings.Builder
		for _, u := range r.Also {
			got = append(got, u.GetKind()+" "+u.GetName())
			if err := json.NewEncoder(&text).Encode(u.Object); err != nil {
				t.Fatal(err)
			}
		}
		slices.Sort(got)
		if !r.Pull || !slices.Equal(got, want) {
			t.Errorf("image %q: pull %t, %q, want %q", image, r.Pull, got, want)
		}
		tokens, err := core.CoreV1().Secrets(metav1.NamespaceSystem).List(t.Context(), metav1.ListOptions{})
		if err != nil || (len(tokens.Items) == 1) != (image != "") {
			t.Errorf("image %q: %d tokens, %v", image, len(tokens.Items), err)
		}
		for _, needed := range []string{"--cluster=east-a", "--account=federation-system/" + join.AccountName("fed-uid"), `"image":"` + image + `"`} {
			if image != "" && !strings.Contains(text.String(), needed) {
				t.Errorf("the agent's objects have no %s", needed)
			}
		}
		for _, left := range []string{"CLUSTER", "ACCOUNT", "IMAGE"} {
			if strings.Contains(text.String(), `"`+left) || strings.Contains(text.String(), "/"+left) {
				t.Errorf("%s is left in the agent's objects", left)
			}
		}
	}
	push := &join.Request{Name: "east-a"}
	if err := (&agent{}).addToJoin(t.Context(), config, fake.NewClientset(), push); err != nil || push.Pull || len(push.Also) > 0 {
		t.Errorf("without --pull: %+v, %v", push, err)
	}
}
