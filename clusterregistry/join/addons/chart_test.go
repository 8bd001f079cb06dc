package addons

import (
	"io"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"federation/clusterregistry/join"
)

const chartUID = "11111111-2222-3333-4444-555555555555" // of the federation, in the values of the tests

// TestTheChartInstallsTheSameNodeAgent: the chart federation-member gives the objects that join --with-nodeagent installs, save the Namespace and labels.
func TestTheChartInstallsTheSameNodeAgent(t *testing.T) {
	for values, agent := range map[string]NodeAgent{
		"nftables": {Image: "registry.example.com/federation-nodeagent:v0.1.0", Mode: "nftables", Server: "api.east.example.com:6443", Blackhole: true, Args: []string{"--federation-uid=" + chartUID, "--clusterset-ip-range=10.200.0.0/16"}},
		"iptables": {Image: "registry.example.com/federation-nodeagent:v1.2.3", Mode: "iptables", Server: "[2001:db8::1]:443", Args: []string{"--scope=federated", "--cluster-cidr=10.180.0.0/14", "--v=2"}},
	} {
		want, err := agent.objects("https://unused")
		if err != nil {
			t.Fatal(err)
		}
		chartHas(t, values, want, "Namespace federation-system")
	}
}

// TestTheChartInstallsTheSameAgent: it gives what join --pull --agent-image installs, save labels, the bootstrap token, and the empty certificate by which
// join ends an earlier one.
func TestTheChartInstallsTheSameAgent(t *testing.T) {
	core := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: chartUID}})
	r := &join.Request{Name: "east-a"}
	a := &Agent{Image: "registry.example.com/federation-agent:v0.1.0"}
	if _, err := a.AddTo(t.Context(), &rest.Config{Host: "https://fed:6443"}, core, r); err != nil {
		t.Fatal(err)
	}
	for _, obj := range r.Also {
		switch obj.GetKind() {
		case "Secret":
			delete(obj.Object, "data")
		case "Deployment":
			unstructured.RemoveNestedField(obj.Object, "spec", "template", "metadata", "annotations")
		}
	}
	chartHas(t, "pull", r.Also, "Secret federation-agent-bootstrap")
}

// chartHas fails unless the chart federation-member, with a file of values, gives just the objects that are wanted, save the one that is named.
func chartHas(t *testing.T, values string, want []*unstructured.Unstructured, save string) {
	t.Helper()
	built, _ := filepath.Glob("../../../_output/bin/helm-v*")
	if len(built) == 0 {
		t.Skip("Helm is not built: hack/build-helm.sh builds it")
	}
	out, err := exec.Command(built[len(built)-1], "template", "agent", "../../../hack/charts/federation-member", "-n", "federation-system",
		"-f", "../../../hack/charts/testdata/federation-member/"+values+".yaml").Output()
	if err != nil {
		t.Fatal(values, err)
	}
	has := map[string]map[string]any{}
	for d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(string(out)), 4096); ; {
		obj := &unstructured.Unstructured{}
		if err := d.Decode(&obj.Object); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(values, err)
		}
		if obj.Object == nil { // a file that gives nothing
			continue
		}
		obj.SetLabels(nil)
		has[obj.GetKind()+" "+obj.GetName()] = normal(t, obj)
	}
	for _, obj := range want {
		name := obj.GetKind() + " " + obj.GetName()
		if name == save {
			continue
		}
		if is := has[name]; !reflect.DeepEqual(is, normal(t, obj)) {
			t.Errorf("%s: %s is\n%v\nin the chart, and join installs\n%v", values, name, is, normal(t, obj))
		}
		delete(has, name)
	}
	if len(has) > 0 {
		t.Errorf("%s: the chart has more: %v", values, has)
	}
}

// normal is an object without what has no meaning: the way in which quantities are written, and how pods are known where a flag says it again.
func normal(t *testing.T, obj *unstructured.Unstructured) map[string]any {
	t.Helper()
	var typed any
	switch obj.GetKind() {
	case "DaemonSet":
		typed = &appsv1.DaemonSet{}
	case "Deployment":
		typed = &appsv1.Deployment{}
	default:
		return obj.Object
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, typed); err != nil {
		t.Fatal(err)
	}
	if d, is := typed.(*appsv1.DaemonSet); is {
		args := d.Spec.Template.Spec.Containers[0].Args
		for i, arg := range args { // join adds --cluster-cidr alone, which goes before the Node's ranges
			if arg == "--detect-local-mode=ClusterCIDR" {
				args[i] = "--detect-local-mode=NodeCIDR"
			}
		}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
