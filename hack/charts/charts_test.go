// Package charts has no program: its tests are those of the charts beside it.
package charts

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// namespaces are where the charts are installed.
var namespaces = map[string]string{"federation": "federation", "federation-lb": "federation-lb", "federation-member": "federation-system"}

// helms are those that are built.
func helms(t *testing.T) []string {
	t.Helper()
	built, err := filepath.Glob("../../_output/bin/helm-v*")
	if err != nil || len(built) == 0 {
		t.Skip("Helm is not built: hack/build-helm.sh builds it")
	}
	return built
}

func run(binary string, args ...string) (out, said string, err error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	return stdout.String(), stderr.String(), err
}

// valuesOf are the files of values of a chart.
func valuesOf(t *testing.T, chart string) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/" + chart + "/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	return files
}

// render renders a chart with the newest Helm, and returns its objects.
func render(t *testing.T, chart, values string) (all []*unstructured.Unstructured) {
	t.Helper()
	built := helms(t)
	out, said, err := run(built[len(built)-1], "template", "federation", chart, "-n", namespaces[chart], "-f", values)
	if err != nil {
		t.Fatalf("%s with %s: %v: %s", chart, values, err, said)
	}
	if odd := regexp.MustCompile(`(?m)[ \t]+$`).FindString(out); odd != "" {
		t.Errorf("%s with %s: a line ends with spaces", chart, values)
	}
	for d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(out), 4096); ; {
		obj := &unstructured.Unstructured{}
		if err := d.Decode(&obj.Object); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if obj.Object != nil {
			all = append(all, obj)
		}
	}
}

// TestLint: both Helms find nothing wrong, with each file of values.
func TestLint(t *testing.T) {
	for _, helm := range helms(t) {
		for chart, namespace := range namespaces {
			for _, values := range valuesOf(t, chart) {
				if out, said, err := run(helm, "lint", "--strict", chart, "-n", namespace, "-f", values); err != nil {
					t.Errorf("%s, %s with %s: %v: %s%s", filepath.Base(helm), chart, values, err, out, said)
				}
			}
		}
	}
}

// TestVersion: the charts have the version of the release.
func TestVersion(t *testing.T) {
	text, err := os.ReadFile("../VERSION")
	if err != nil {
		t.Fatal(err)
	}
	version := strings.TrimSpace(string(text))
	for chart := range namespaces {
		var about struct{ Version, AppVersion string }
		text, err := os.ReadFile(chart + "/Chart.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if err := sigsyaml.Unmarshal(text, &about); err != nil {
			t.Fatal(err)
		}
		if about.AppVersion != version || "v"+about.Version != version {
			t.Errorf("Chart.yaml of %s: %+v, and hack/VERSION has %s", chart, about, version)
		}
	}
}

// podsOf are the pods that objects make, by kind and name.
func podsOf(t *testing.T, all []*unstructured.Unstructured) map[string]*corev1.PodSpec {
	t.Helper()
	pods := map[string]*corev1.PodSpec{}
	for _, obj := range all {
		if !slices.Contains([]string{"StatefulSet", "Deployment", "DaemonSet"}, obj.GetKind()) {
			continue
		}
		var d appsv1.DaemonSet // they are alike in what is looked at
		content := map[string]any{"spec": map[string]any{"template": obj.Object["spec"].(map[string]any)["template"]}}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &d); err != nil {
			t.Fatal(err)
		}
		pods[obj.GetKind()+" "+obj.GetName()] = &d.Spec.Template.Spec
	}
	return pods
}

// TestLeastPrivileges: no container writes its root file system, gains privileges or has a capability, nor is any pod root, on its node's network or
// with a token of the cluster, save those of a member: its node agent is root, and both of its agents use its API. Nothing else is a right in the cluster.
func TestLeastPrivileges(t *testing.T) {
	for chart := range namespaces {
		member := chart == "federation-member"
		for _, values := range valuesOf(t, chart) {
			all := render(t, chart, values)
			for name, pod := range podsOf(t, all) {
				onNode := name == "DaemonSet federation-nodeagent"
				if c := pod.SecurityContext; c == nil || c.SeccompProfile == nil || c.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault ||
					!onNode && (c.RunAsNonRoot == nil || !*c.RunAsNonRoot || pod.HostNetwork) || !member && (pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken) {
					t.Errorf("%s with %s: %s: %+v", chart, values, name, c)
				}
				for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
					s := c.SecurityContext
					if s == nil || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || !onNode && len(s.Capabilities.Add) > 0 {
						t.Errorf("%s with %s: %s, container %s: %+v", chart, values, name, c.Name, s)
					}
					if c.Resources.Limits.Memory().IsZero() || c.Name != "pki" && c.LivenessProbe == nil {
						t.Errorf("%s with %s: %s, container %s has no limit or no probe", chart, values, name, c.Name)
					}
				}
			}
			for _, obj := range all {
				if !member && strings.HasPrefix(obj.GetAPIVersion(), "rbac.") || obj.GetKind() == "Secret" && (obj.Object["data"] != nil || obj.Object["stringData"] != nil) {
					t.Errorf("%s with %s has a %s %s", chart, values, obj.GetKind(), obj.GetName())
				}
			}
		}
	}
}

// TestALoadBalancerLastsAsLongAsItsDrain: its pod is not ended before, and another one is ready before it is asked to end.
func TestALoadBalancerLastsAsLongAsItsDrain(t *testing.T) {
	for _, values := range valuesOf(t, "federation-lb") {
		for _, obj := range render(t, "federation-lb", values) {
			if obj.GetKind() != "Deployment" {
				continue
			}
			d := &appsv1.Deployment{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, d); err != nil {
				t.Fatal(err)
			}
			var drains time.Duration
			pod := d.Spec.Template.Spec
			for _, arg := range pod.Containers[0].Args {
				if flag, value, _ := strings.Cut(arg, "="); flag == "--drain-delay" || flag == "--drain-timeout" {
					takes, err := time.ParseDuration(value)
					if err != nil {
						t.Fatal(arg, err)
					}
					drains += takes
				}
			}
			if lasts := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; drains == 0 || lasts <= drains || d.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue() != 0 {
				t.Errorf("%s: the pod lasts %s, and drains for %s; %v", values, lasts, drains, d.Spec.Strategy.RollingUpdate)
			}
		}
	}
}

// TestFlags: the programs have the flags that the charts give them.
func TestFlags(t *testing.T) {
	for chart := range namespaces {
		for _, values := range valuesOf(t, chart) {
			for name, pod := range podsOf(t, render(t, chart, values)) {
				for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
					program := "federation-" + c.Name // of an image whose command it is
					if len(c.Command) > 0 {
						program = strings.TrimPrefix(c.Command[0], "/")
					}
					help, said, err := run("../../_output/bin/"+program, slices.Concat(slices.DeleteFunc(slices.Clone(c.Args), func(a string) bool { return strings.HasPrefix(a, "-") }), []string{"--help"})...)
					if err != nil {
						t.Fatal(program, err, said)
					}
					for _, arg := range c.Args {
						flag, _, _ := strings.Cut(arg, "=")
						if strings.HasPrefix(flag, "--") && !regexp.MustCompile(regexp.QuoteMeta(flag)+`\b`).MatchString(help) {
							t.Errorf("%s with %s: %s, container %s: %s has no flag %s", chart, values, name, c.Name, program, flag)
						}
					}
				}
			}
		}
	}
}
