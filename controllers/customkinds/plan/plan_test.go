package plan

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"federation/apiserver/apis/federation/v1beta1"
)

func definition(plural, kind string, established bool, finalizers []string, versions ...map[string]any) *unstructured.Unstructured {
	list, status := make([]any, 0, len(versions)), "False"
	for _, v := range versions {
		list = append(list, v)
	}
	if established {
		status = "True"
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"group": "shop.example", "scope": "Namespaced", "versions": list,
			"names": map[string]any{"plural": plural, "kind": kind},
		},
		"status": map[string]any{"conditions": []any{
			map[string]any{"type": "NamesAccepted", "status": "True"}, map[string]any{"type": "Established", "status": status},
		}},
	}}
	u.SetName(plural + ".shop.example")
	u.SetFinalizers(finalizers)
	return u
}

func version(name string, served, storage bool) map[string]any {
	return map[string]any{"name": name, "served": served, "storage": storage}
}

func policy(apiVersion, kind string) *v1beta1.PlacementPolicy {
	return &v1beta1.PlacementPolicy{Spec: v1beta1.PlacementPolicySpec{ResourceSelectors: []v1beta1.ResourceSelector{
		{APIVersion: "apps/v1", Kind: "Deployment"}, {APIVersion: apiVersion, Kind: kind},
	}}}
}

var (
	carts  = Read(definition("carts", "Cart", true, nil, version("v1", true, false), version("v2", true, true)))
	olds   = Read(definition("olds", "Old", true, nil, version("v1", true, false), version("v2", false, true)))
	kept   = Read(definition("kepts", "Kept", true, []string{v1beta1.DeleteFromClustersFinalizer}, version("v1", true, true)))
	coming = Read(definition("comings", "Coming", false, nil, version("v1", true, true)))
	all    = []Definition{kept, carts, olds, coming}
)

func TestReadDefinition(t *testing.T) {
	if want := (Kind{"carts.shop.example", schema.GroupVersionResource{Group: "shop.example", Version: "v2", Resource: "carts"}, "Cart", true, Scale{}}); carts.Kind != want {
		t.Errorf("%+v, want %+v", carts.Kind, want)
	}
	if !slices.Equal(carts.Served, []string{"v1", "v2"}) || !slices.Equal(olds.Served, []string{"v1"}) || olds.Resource.Version != "v1" {
		t.Errorf("%+v %+v", carts, olds)
	}
}

func TestReadScale(t *testing.T) {
	paths := func(spec, status, selector string) map[string]any {
		return map[string]any{"specReplicasPath": spec, "statusReplicasPath": status, "labelSelectorPath": selector}
	}
	for _, test := range []struct {
		name  string
		scale map[string]any
		want  Scale
	}{
		{"none", nil, Scale{}},
		{"fields of the status", paths(".spec.replicas", ".status.replicas", ".status.labelSelector"), Scale{"replicas", "labelSelector"}},
		{"what is asked for is elsewhere", paths(".spec.size", ".status.replicas", ".status.selector"), Scale{}},
		{"below a field of the status", paths(".spec.replicas", ".status.pods.all", ".status.pods[0]"), Scale{}},
		{"the selector is asked for", paths(".spec.replicas", ".status.replicas", ".spec.selector"), Scale{"replicas", ""}},
	} {
		v := version("v1", true, true)
		v["subresources"] = map[string]any{"status": map[string]any{}}
		if test.scale != nil {
			v["subresources"].(map[string]any)["scale"] = test.scale
		}
		if got := Read(definition("carts", "Cart", true, nil, v)).Scale; got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
		delete(v["subresources"].(map[string]any), "status")
		if got := Read(definition("carts", "Cart", true, nil, v)).Scale; got != (Scale{}) {
			t.Errorf("%s, without a status: %+v", test.name, got)
		}
	}
}

func TestFind(t *testing.T) {
	if k, err := Find(all, schema.GroupKind{Group: "shop.example", Kind: "Cart"}); err != nil || k.Resource.Resource != "carts" {
		t.Errorf("%+v, %v", k, err)
	}
	for _, kind := range []schema.GroupKind{{Group: "shop.example", Kind: "Coming"}, {Group: "other.example", Kind: "Cart"}} {
		if k, err := Find(all, kind); err == nil {
			t.Errorf("%s: %+v", kind, k)
		}
	}
}

func TestWanted(t *testing.T) {
	for _, test := range []struct {
		name     string
		policies []*v1beta1.PlacementPolicy
		want     string
	}{
		{"one that the members have stays without a policy", nil, "kepts"},
		{"a policy names one by a version that is served", []*v1beta1.PlacementPolicy{policy("shop.example/v1", "Cart")}, "carts kepts"},
		{"by one that is not", []*v1beta1.PlacementPolicy{policy("shop.example/v2", "Old")}, "kepts"},
		{"in another group", []*v1beta1.PlacementPolicy{policy("v1", "Cart")}, "kepts"},
		{"not established", []*v1beta1.PlacementPolicy{policy("shop.example/v1", "Coming")}, "kepts"},
		{"two", []*v1beta1.PlacementPolicy{policy("shop.example/v1", "Old"), policy("shop.example/v2", "Cart"), policy("shop.example/v1", "Cart")}, "carts kepts olds"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, k := range Wanted(all, test.policies) {
				got = append(got, k.Resource.Resource)
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("%v, want %s", got, test.want)
			}
		})
	}
}

func TestResolve(t *testing.T) {
	for _, test := range []struct{ apiVersion, kind, want string }{
		{"shop.example/v1", "Cart", "carts"},
		{"shop.example/v2", "Cart", "carts"},
		{"shop.example/v3", "Cart", "carts.shop.example does not serve version v3: it serves v1, v2"},
		{"shop.example/v1", "Coming", "is not established"},
		{"shop.example/v1", "Bird", `defines kind Bird in group "shop.example"`},
		{"a/b/c", "Cart", "a/b/c"},
	} {
		k, err := Resolve(all, test.apiVersion, test.kind)
		if err != nil && !strings.Contains(err.Error(), test.want) || err == nil && k.Resource.Resource != test.want {
			t.Errorf("%s %s: %v, %v, want %s", test.apiVersion, test.kind, k, err, test.want)
		}
	}
}
