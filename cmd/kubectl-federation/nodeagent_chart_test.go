package main

import (
	"io"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// TestTheChartInstallsTheSame: the chart federation-member gives the objects that join installs, save the Namespace and labels.
func TestTheChartInstallsTheSame(t *testing.T) {
	built, _ := filepath.Glob("../../_output/bin/helm-v*")
	if len(built) == 0 {
		t.Skip("Helm is not built: hack/build-helm.sh builds it")
	}
	for values, agent := range map[string]nodeAgent{
		"nftables": {image: "registry.example.com/federation-nodeagent:v0.1.0", mode: "nftables", server: "api.east.example.com:6443", blackhole: true, args: []string{"--federation-uid=11111111-2222-3333-4444-555555555555", "--clusterset-ip-range=10.200.0.0/16"}},
		"iptables": {image: "registry.example.com/federation-nodeagent:v1.2.3", mode: "iptables", server: "[2001:db8::1]:443", args: []string{"--scope=federated", "--cluster-cidr=10.180.0.0/14", "--v=2"}},
	} {
		out, err := exec.Command(built[len(built)-1], "template", "agent", "../../hack/charts/federation-member", "-n", "federation-system",
			"-f", "../../hack/charts/testdata/federation-member/"+values+".yaml").Output()
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
			obj.SetLabels(nil)
			has[obj.GetKind()+" "+obj.GetName()] = normal(t, obj)
		}
		want, err := agent.objects("https://unused")
		if err != nil {
			t.Fatal(err)
		}
		for _, obj := range want {
			name := obj.GetKind() + " " + obj.GetName()
			if obj.GetKind() == "Namespace" {
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
}

// normal is an object without what has no meaning: the way in which quantities are written, and how pods are known where a flag says it again.
func normal(t *testing.T, obj *unstructured.Unstructured) map[string]any {
	t.Helper()
	if obj.GetKind() != "DaemonSet" {
		return obj.Object
	}
	d := &appsv1.DaemonSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, d); err != nil {
		t.Fatal(err)
	}
	c := &d.Spec.Template.Spec.Containers[0]
	for i, arg := range c.Args { // join adds --cluster-cidr alone, which goes before the Node's ranges
		if arg == "--detect-local-mode=ClusterCIDR" {
			c.Args[i] = "--detect-local-mode=NodeCIDR"
		}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
