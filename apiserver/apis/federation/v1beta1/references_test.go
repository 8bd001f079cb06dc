package v1beta1

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

func TestReferences(t *testing.T) {
	pod := `{serviceAccountName: runner, imagePullSecrets: [{name: pull}], volumes: [{secret: {secretName: file}}, {projected: {sources: [{secret: {name: part}}, {configMap: {name: conf}}]}}],
  initContainers: [{envFrom: [{secretRef: {name: all}}]}], containers: [{env: [{valueFrom: {secretKeyRef: {name: key}}}]}]}`
	all := "[{ConfigMap conf} {Secret all} {Secret file} {Secret key} {Secret part} {Secret pull} {ServiceAccount runner}]"
	for kind, c := range map[string]struct{ text, want string }{
		"Deployment.apps":           {"{spec: {template: {spec: " + pod + "}}}", all},
		"CronJob.batch":             {"{spec: {jobTemplate: {spec: {template: {spec: " + pod + "}}}}}", all},
		"Pod":                       {"{spec: " + pod + "}", all},
		"Rollout.example.com":       {"{spec: {template: {spec: " + pod + "}}}", all},
		"Ingress.networking.k8s.io": {"{spec: {tls: [{secretName: b}, {hosts: [x]}, {secretName: a}, {secretName: b}]}}", "[{Secret a} {Secret b}]"},
		"ServiceAccount":            {"{secrets: [{name: a}], imagePullSecrets: [{name: b}]}", "[{Secret a} {Secret b}]"},
		"ConfigMap":                 {"{spec: {template: {spec: " + pod + "}}}", "[]"},
		"Secret":                    {"{data: {a: b}}", "[]"},
		"Job.batch":                 {"{spec: {template: {spec: {serviceAccountName: default, volumes: 7, containers: [[], {env: {}}]}}}}", "[]"},
	} {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(c.text), &object); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(References(schema.ParseGroupKind(kind), object)); got != c.want {
			t.Errorf("%s refers to %s, want %s", kind, got, c.want)
		}
	}
}

// TestEverySecretOfAPodIsFound checks that a field which Kubernetes adds to its API is missed here, not in a cluster.
func TestEverySecretOfAPodIsFound(t *testing.T) {
	var known []string
	for _, p := range podReferences {
		if p.kind == "Secret" {
			known = append(known, strings.Join(p.path, "."))
		}
	}
	for _, path := range secretPaths(reflect.TypeFor[corev1.PodSpec](), "", 0) {
		if !slices.Contains(known, path) {
			t.Errorf("%s is not among podReferences", path)
		}
	}
}

// secretPaths returns the paths of strings that name a Secret: their names mention one, and end with its name.
func secretPaths(of reflect.Type, path string, depth int) (paths []string) {
	switch of.Kind() {
	case reflect.Pointer:
		return secretPaths(of.Elem(), path, depth)
	case reflect.Slice:
		return secretPaths(of.Elem(), path+".[]", depth)
	case reflect.String:
		last := path[strings.LastIndex(path, ".")+1:]
		if name := last == "name" && !strings.Contains(path, ".items."); strings.Contains(strings.ToLower(path), "secret") && (name || last == "secretName") {
			return []string{strings.TrimPrefix(path, ".")}
		}
	case reflect.Struct:
		for i := range of.NumField() {
			field, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			next := path
			if field != "" {
				next += "." + field
			}
			if depth < 12 {
				paths = append(paths, secretPaths(of.Field(i).Type, next, depth+1)...)
			}
		}
	}
	return paths
}

func TestIdle(t *testing.T) {
	for text, want := range map[string]bool{
		"Deployment.apps {spec: {replicas: 0}}": true, "Deployment.apps {spec: {replicas: 1}}": false, "Deployment.apps {spec: {}}": false,
		"Job.batch {spec: {parallelism: 0}}": true, "DaemonSet.apps {spec: {}}": false, "ServiceAccount {}": false,
		"Pod {status: {phase: Succeeded}}": true, "Pod {status: {phase: Running}}": false,
	} {
		kind, object, _ := strings.Cut(text, " ")
		var content map[string]any
		if err := yaml.Unmarshal([]byte(object), &content); err != nil {
			t.Fatal(err)
		}
		if got := Idle(schema.ParseGroupKind(kind), content); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

// FuzzReferences: objects of custom kinds, and those of members, may have anything anywhere.
func FuzzReferences(f *testing.F) {
	f.Add("Deployment.apps", `{"spec":{"template":{"spec":{"volumes":[{"secret":{"secretName":"a"}}]}}}}`)
	f.Add("Ingress.networking.k8s.io", `{"spec":{"tls":[{"secretName":"a"},7,null]}}`)
	f.Add("Pod", `{"spec":{"containers":[{"env":[{"valueFrom":{"secretKeyRef":{"name":["a"]}}}]}]},"status":{"phase":7}}`)
	f.Fuzz(func(t *testing.T, kind, text string) {
		var object map[string]any
		if json.Unmarshal([]byte(text), &object) != nil {
			return
		}
		k := schema.ParseGroupKind(kind)
		Idle(k, object)
		found := References(k, object)
		for i, r := range found {
			if r.Name == "" || i > 0 && found[i-1] == r {
				t.Errorf("%v", found)
			}
		}
	})
}
