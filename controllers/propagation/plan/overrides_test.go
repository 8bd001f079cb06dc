package plan

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// The author of a policy could double the object with each operation, until the federation had no memory left.
func TestOverridesDoNotGrowWithoutBound(t *testing.T) {
	within, beside := v1beta1.Override{}, v1beta1.Override{JSONPatch: []v1beta1.JSONPatchOperation{op("add", "/spec/a", `{}`), op("add", "/spec/b", `{"x":"`+strings.Repeat("x", 100)+`"}`)}}
	var one []v1beta1.Override
	for i := range 18 {
		within.JSONPatch = append(within.JSONPatch, v1beta1.JSONPatchOperation{Op: "copy", From: "/spec", Path: fmt.Sprintf("/spec/a%d", i)})
		from, to := "/spec/a", "/spec/b"
		if i%2 == 0 {
			from, to = to, from
		}
		beside.JSONPatch = append(beside.JSONPatch, v1beta1.JSONPatchOperation{Op: "copy", From: from, Path: fmt.Sprintf("%s/%d", to, i)})
		one = append(one, v1beta1.Override{JSONPatch: within.JSONPatch[i:]})
	}
	large := v1beta1.Override{JSONPatch: []v1beta1.JSONPatchOperation{op("add", "/spec/a", `"`+strings.Repeat("x", 1<<20)+`"`), op("add", "/spec/b", `"`+strings.Repeat("x", 1<<20)+`"`)}}
	for name, c := range map[string]struct {
		overrides []v1beta1.Override
		want      string
	}{
		"into itself":               {[]v1beta1.Override{within}, ": copy /spec/a"},
		"into each other":           {[]v1beta1.Override{beside, beside}, ": copy /spec/"},
		"each override by itself":   {one, ": copy /spec/a"},
		"large values":              {[]v1beta1.Override{large}, "spec.overrides[0].jsonPatch[1]: add /spec/b: "},
		"large values one by one":   {[]v1beta1.Override{{JSONPatch: large.JSONPatch[:1]}, {JSONPatch: large.JSONPatch[1:]}}, "spec.overrides[1].jsonPatch[0]: add /spec/b: "},
		"the same place, too often": {[]v1beta1.Override{{JSONPatch: []v1beta1.JSONPatchOperation{large.JSONPatch[0], large.JSONPatch[0]}}}, "jsonPatch[1]: add /spec/a: "},
	} {
		d := Desire(governed(source(kind(t, "ReplicaSet"), parse(t, web)), c.overrides...), east)
		if d.Presence != Undecided || !strings.Contains(d.Refusal, c.want) || !strings.Contains(d.Refusal, "at most 1572864 bytes") {
			t.Errorf("%s: presence %d, refusal %q, want %q and the most that is allowed", name, d.Presence, d.Refusal, c.want)
		}
	}
}

// A Secret that is a token of a ServiceAccount is never federated: each cluster makes its own.
func TestOverridesMakeNothingThatIsNotFederated(t *testing.T) {
	secret := parse(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"shop","annotations":{"kubernetes.io/service-account.name":"admin","federation.kubernetes.io/placement":"{\"clusters\":{\"east-a\":1}}"}},"type":"Opaque","data":{}}`)
	for _, o := range []v1beta1.JSONPatchOperation{
		op("replace", "/type", `"`+string(corev1.SecretTypeServiceAccountToken)+`"`),
		op("replace", "/type", `"kubernetes.io/tls"`),
		op("remove", "/type", ""),
		{Op: "move", From: "/type", Path: "/data/x"},
	} {
		d := Desire(governed(source(kind(t, "Secret"), secret.DeepCopy()), v1beta1.Override{JSONPatch: []v1beta1.JSONPatchOperation{o}}), east)
		if d.Presence != Undecided || !strings.Contains(d.Refusal, "/type may not be overridden") {
			t.Errorf("%v: presence %d, refusal %q", o, d.Presence, d.Refusal)
		}
	}
}

// FuzzOverride checks that whatever operations do, the result is small and fast, and keeps what identifies the object.
func FuzzOverride(f *testing.F) {
	for _, operations := range []string{
		`[{"op":"copy","from":"/spec","path":"/spec/a"},{"op":"copy","from":"/spec","path":"/spec/b"}]`,
		`[{"op":"add","path":"/metadata/labels/a","value":"b"},{"op":"remove","path":"/metadata/name"}]`,
		`[{"op":"move","from":"/spec","path":"/spec/a"},{"op":"test","path":"","value":null}]`,
		`[{"op":"add","path":"/spec/template/spec/containers/-","value":{"name":"x"}},{"op":"copy","from":"","path":"/spec/x"}]`,
		`[{"op":"replace","path":"/metadata","value":7},{"op":"replace","path":"","value":7}]`,
		`[{"op":"add","path":"/spec/template/spec/containers/18446744073709551616","value":1e999}]`,
		`[{"op":"add","path":"/metadata/annotations","value":{"a":1}},{"op":"add","path":"/~0~1","value":"\u2028<"}]`,
	} {
		f.Add([]byte(operations))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var operations []v1beta1.JSONPatchOperation
		if json.Unmarshal(text, &operations) != nil || len(operations) > 200 {
			return
		}
		was := parse(t, web)
		s := governed(source(kind(t, "ReplicaSet"), was.DeepCopy()), v1beta1.Override{JSONPatch: operations})
		began := time.Now()
		got, err := s.applyOverrides(was.DeepCopy(), east)
		if took := time.Since(began); took > 10*time.Second { // a machine may be busy; doubling would take for ever
			t.Errorf("it took %v", took)
		}
		if !reflect.DeepEqual(s.Object, was) {
			t.Errorf("the federated object itself was changed")
		}
		if err != nil {
			return
		}
		if n := len(JSON(got.Object)); n > 1572864 {
			t.Errorf("%d bytes", n)
		}
		if got.GetName() != was.GetName() || got.GetNamespace() != was.GetNamespace() || got.GroupVersionKind() != was.GroupVersionKind() {
			t.Errorf("it is %s %s/%s", got.GroupVersionKind(), got.GetNamespace(), got.GetName())
		}
		before, _, _ := unstructured.NestedFieldNoCopy(was.Object, "spec", "replicas")
		after, _, _ := unstructured.NestedFieldNoCopy(got.Object, "spec", "replicas")
		if !reflect.DeepEqual(before, after) {
			t.Errorf("%v replicas", after)
		}
		for _, m := range []string{"labels", "annotations"} { // else our marks are lost
			if _, _, err := unstructured.NestedStringMap(got.Object, "metadata", m); err != nil {
				t.Error(err)
			}
		}
		Desire(s, east)
	})
}
