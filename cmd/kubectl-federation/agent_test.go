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

// What join prints for an agent on a host is what docs/pull.md has, with the flags that named both sides.
func TestAgentCommands(t *testing.T) {
	a := &agent{Agent: addons.Agent{Server: "https://fed.example.com:6443"}, account: "federation-uid"}
	got := a.commands(&sides{kubeconfig: "all.kubeconfig", context: "fed", memberContext: "east"}, "east-a")
	for _, want := range []string{
		"kubectl federation token create east-a --kubeconfig all.kubeconfig --context fed --server https://fed.example.com:6443 > east-a-bootstrap.kubeconfig\n",
		"kubectl config view --minify --flatten --kubeconfig all.kubeconfig --context east > east-a.kubeconfig\n",
		"federation-agent --cluster east-a --bootstrap-kubeconfig east-a-bootstrap.kubeconfig --kubeconfig east-a.kubeconfig", "--account federation-system/federation-uid --cert-dir east-a-agent\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if got := a.commands(&sides{memberKubeconfig: "east.kubeconfig"}, "east-a"); !strings.Contains(got, "--flatten --kubeconfig east.kubeconfig > east-a.kubeconfig") {
		t.Errorf("the cluster's own kubeconfig is not used:\n%s", got)
	}
}
