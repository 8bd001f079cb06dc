package v1beta1

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// typeAt returns the type of the field that a path leads to, by its names in JSON; "[]" stands for the items of a list. nil: there is none.
func typeAt(of reflect.Type, path []string) reflect.Type {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if len(path) == 0 {
		return of
	}
	if path[0] == "[]" {
		if of.Kind() != reflect.Slice {
			return nil
		}
		return typeAt(of.Elem(), path[1:])
	}
	if of.Kind() != reflect.Struct {
		return nil
	}
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		inside := path
		switch name {
		case path[0]:
			inside = path[1:]
		case "":
			if !of.Field(i).Anonymous {
				continue
			}
		default:
			continue
		}
		if found := typeAt(of.Field(i).Type, inside); found != nil {
			return found
		}
	}
	return nil
}

// kindOfKubernetes returns the type of a kind in a version.
func kindOfKubernetes(t *testing.T, kind schema.GroupVersionKind) reflect.Type {
	t.Helper()
	object, err := scheme.Scheme.New(kind)
	if err != nil {
		t.Fatal(err)
	}
	return reflect.TypeOf(object)
}

// Each row of the table of kinds says the truth about Kubernetes' type: its resource, the fields with the numbers of replicas, and where its pods are.
func TestFederatedKindsAreAsKubernetesHasThem(t *testing.T) {
	pod := reflect.TypeFor[corev1.PodSpec]()
	for _, k := range FederatedKinds {
		kind := k.Resource.GroupVersion().WithKind(k.Kind)
		of := kindOfKubernetes(t, kind)
		if plural, want := k.Resource.Resource, strings.ToLower(k.Kind); !strings.HasPrefix(plural, strings.TrimSuffix(want, "y")) ||
			!strings.HasSuffix(plural, "s") {
			t.Errorf("%s is served as %s", k.Kind, plural)
		}
		divided := k.Preferences != ""
		for name, path := range map[string][]string{"replicas": {"spec", k.Replicas}, "ready": {"status", k.Ready}} {
			if path[1] == "" {
				if divided {
					t.Errorf("%s is divided, and has no %s", k.Kind, name)
				}
				continue
			}
			if number := typeAt(of, path); !divided || number == nil || number.Kind() != reflect.Int32 {
				t.Errorf("%s: divided: %t; %v is a %v, want a number", k.Kind, divided, path, number)
			}
		}
		if divided && k.Runs {
			t.Errorf("%s is divided, and undivided", k.Kind)
		}
		has := typeAt(of, strings.Split(template, ".")) == pod || typeAt(of, strings.Split("spec.jobTemplate."+template, ".")) == pod
		if has != (k.Template != "") || has && typeAt(of, strings.Split(k.Template, ".")) != pod || has != (divided || k.Runs) {
			t.Errorf("%s has pods: %t, and its template is %q", k.Kind, has, k.Template)
		}
		for _, p := range readPaths(k.References) {
			if at := typeAt(of, p.path); at == nil || at.Kind() != reflect.String {
				t.Errorf("%s: %v is a %v, want a text", k.Kind, p.path, at)
			}
			if i := slices.IndexFunc(FederatedKinds, func(other FederatedKind) bool { return other.Kind == p.kind }); i < 0 || !FederatedKinds[i].Referable {
				t.Errorf("%s refers to a %s, to which nothing refers", k.Kind, p.kind)
			}
		}
		if got := FederatedKindOf(k.Resource.GroupResource()); got == nil || got.Kind != k.Kind {
			t.Errorf("%s: %+v", k.Resource, got)
		}
		if Refers(kind.GroupKind()) != (has || len(k.References) > 0) {
			t.Errorf("%s refers to others: %t", k.Kind, Refers(kind.GroupKind()))
		}
	}
}

// What others need is created first: whom objects refer to comes before them in the table, and namespaces before all.
func TestFederatedKindsAreInOrderOfCreation(t *testing.T) {
	index := func(kind string) int {
		return slices.IndexFunc(FederatedKinds, func(k FederatedKind) bool { return k.Kind == kind })
	}
	if index("Namespace") != 0 {
		t.Errorf("namespaces are at %d", index("Namespace"))
	}
	for i, k := range FederatedKinds {
		for _, p := range k.References {
			if p.Kind != "Secret" || k.Kind != "ServiceAccount" { // which works before its Secrets are there
				if index(p.Kind) > i {
					t.Errorf("a %s needs a %s, which comes after it", k.Kind, p.Kind)
				}
			}
		}
		for _, p := range podReferences {
			if k.Template != "" && index(p.kind) > i {
				t.Errorf("a %s needs a %s, which comes after it", k.Kind, p.kind)
			}
		}
		if FederatedResources[i] != k.Resource {
			t.Errorf("%d: %s, want %s", i, FederatedResources[i], k.Resource)
		}
	}
}

// Each path of what a pod refers to leads to a text in Kubernetes' type, and is there once; the kinds are those to which workloads refer.
func TestPodReferencesLeadToNames(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range podReferences {
		if at := typeAt(reflect.TypeFor[corev1.PodSpec](), p.path); at == nil || at.Kind() != reflect.String {
			t.Errorf("%v is a %v, want a text", p.path, at)
		}
		key := strings.ToLower(strings.Join(p.path, "."))
		if !strings.Contains(key, strings.ToLower(p.kind)) {
			t.Errorf("at %s there is no %s", key, p.kind)
		}
		if seen[key] {
			t.Errorf("%s is there twice", key)
		} else {
			seen[key] = true
		}
		if kind := FederatedKindOf(schema.GroupResource{Resource: strings.ToLower(p.kind) + "s"}); kind == nil || !kind.Referable {
			t.Errorf("a pod refers to a %s, to which nothing refers", p.kind)
		}
	}
}

// Wherever in an object of a kind one name stands to which it refers, just that is found; beside it nothing is, as long as no other is named.
func TestReferencesAreFoundOneByOne(t *testing.T) {
	for _, row := range Referrers {
		kind := schema.GroupKind{Group: row.Resource.Group, Kind: row.Kind}
		paths := readPaths(row.Also)
		if row.Template != "" {
			for _, p := range podReferences {
				paths = append(paths, readPath{p.kind, append(takenApart(row.Template), p.path...)})
			}
		}
		for _, p := range paths {
			object := valueWith(p.path, "x").(map[string]any)
			got := References(kind, object)
			if want := []Reference{{p.kind, "x"}}; !slices.Equal(got, want) {
				t.Errorf("%s, %v: %v, want %v", row.Kind, p.path, got, want)
			}
			of := kindOfKubernetes(t, row.Resource.GroupVersion().WithKind(row.Kind))
			if typed := reflect.New(of.Elem()).Interface(); runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object, typed, true) != nil {
				t.Errorf("%s has nothing at %v", row.Kind, p.path)
			}
			for name, value := range map[string]any{"no name": "", "a number": int64(7), "nothing": nil, "an object": map[string]any{"name": "x"}} {
				if got := References(kind, valueWith(p.path, value).(map[string]any)); len(got) > 0 {
					t.Errorf("%s, %v is %s: %v", row.Kind, p.path, name, got)
				}
			}
			got = References(kind, valueWith(p.path, "default").(map[string]any))
			if (len(got) == 0) != (p.kind == "ServiceAccount") {
				t.Errorf("%s, %v is default: %v", row.Kind, p.path, got)
			}
		}
	}
	for _, kind := range []string{"ServiceAccount", "Ingress.networking.k8s.io"} {
		if got := References(schema.ParseGroupKind(kind), map[string]any{"serviceAccountName": "x",
			"volumes": []any{map[string]any{"secret": map[string]any{"secretName": "x"}}}}); got != nil {
			t.Errorf("a %s, which has no pods, refers to %v as they do", kind, got)
		}
	}
	for _, kind := range []string{"Service", "ConfigMap", "Secret", "Namespace", "NetworkPolicy.networking.k8s.io"} {
		if Refers(schema.ParseGroupKind(kind)) || References(schema.ParseGroupKind(kind), valueWith(strings.Split(template+".serviceAccountName", "."),
			"x").(map[string]any)) != nil {
			t.Errorf("a %s refers to others", kind)
		}
	}
}

// valueWith returns an object that has a value at a path, and lists of one item on the way.
func valueWith(path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	if path[0] == "[]" {
		return []any{valueWith(path[1:], value)}
	}
	return map[string]any{path[0]: valueWith(path[1:], value)}
}

// An object is idle where its number of replicas is 0, however JSON was read; a kind that has no such number never is.
func TestIdleIsByTheNumberOfTheKind(t *testing.T) {
	for _, k := range FederatedKinds {
		kind := schema.GroupKind{Group: k.Resource.Group, Kind: k.Kind}
		for _, c := range []struct {
			value any
			idle  bool
		}{{int64(0), true}, {float64(0), true}, {int64(1), false}, {float64(0.5), false}, {"0", false}, {nil, false}} {
			field := k.Replicas
			if field == "" {
				field = "replicas"
			}
			if got := Idle(kind, map[string]any{"spec": map[string]any{field: c.value}}); got != (c.idle && k.Replicas != "") {
				t.Errorf("%s with %s %v: idle %t", k.Kind, field, c.value, got)
			}
		}
	}
	for phase, want := range map[any]bool{"Pending": false, "Running": false, "Unknown": false, "Succeeded": true, "Failed": true, nil: false, 7: false} {
		if got := Idle(podKind, map[string]any{"status": map[string]any{"phase": phase}}); got != want {
			t.Errorf("a pod that is %v: idle %t", phase, got)
		}
	}
}

// Secrets and service accounts are confined, as kinds and as resources; those of other groups are not.
func TestConfinedKindsAndResourcesAgree(t *testing.T) {
	for _, k := range FederatedKinds {
		if Confined(k.Resource.GroupResource()) != ConfinedKinds[k.Kind] {
			t.Errorf("%s is confined: %t, and as a kind %t", k.Resource.Resource, Confined(k.Resource.GroupResource()), ConfinedKinds[k.Kind])
		}
		if foreign := (schema.GroupResource{Group: "example.com", Resource: k.Resource.Resource}); Confined(foreign) || FederatedKindOf(foreign) != nil ||
			Federated(foreign, "shop", "web", "") {
			t.Errorf("%s is taken for Kubernetes' own", foreign)
		}
		if ConfinedKinds[k.Kind] && !k.Referable {
			t.Errorf("a %s goes where its referrers go, and there are none", k.Kind)
		}
	}
	if !ConfinedKinds["Secret"] || !ConfinedKinds["ServiceAccount"] || len(ConfinedKinds) != 2 {
		t.Errorf("%v are confined", ConfinedKinds)
	}
}

// What is in a namespace that every cluster keeps for itself is federated in no kind, nor is the namespace; elsewhere an object of any other name is.
func TestOwnNamespacesAreNotFederated(t *testing.T) {
	own := []string{"kube-system", "kube-public", "kube-node-lease", "federation-system", "federation-load-balancers"}
	for _, k := range FederatedKinds {
		resource, namespaced := k.Resource.GroupResource(), k.Kind != "Namespace"
		for _, namespace := range own {
			object, of := "web", namespace
			if !namespaced {
				object, of = namespace, ""
			}
			if !OwnNamespace(namespace) || Federated(resource, of, object, "") {
				t.Errorf("%s %q in %q is federated", k.Kind, object, of)
			}
		}
		for _, namespace := range []string{"default", "shop", "kube-systems", "federation"} {
			object, of := "web", namespace
			if !namespaced {
				object, of = "shop-"+namespace, ""
			}
			if OwnNamespace(namespace) || !Federated(resource, of, object, corev1.SecretTypeOpaque) {
				t.Errorf("%s %q in %q is not federated", k.Kind, object, of)
			}
		}
	}
}

// A Job whose pods have indexes is one of Kubernetes' own that says so; others are divided.
func TestIndexedJobs(t *testing.T) {
	for name, c := range map[string]struct {
		apiVersion, kind, mode string
		want                   bool
	}{
		"indexed":            {"batch/v1", "Job", "Indexed", true},
		"not indexed":        {"batch/v1", "Job", "NonIndexed", false},
		"by default":         {"batch/v1", "Job", "", false},
		"of another group":   {"example.com/v1", "Job", "Indexed", false},
		"of another kind":    {"batch/v1", "CronJob", "Indexed", false},
		"in another version": {"batch/v2", "Job", "Indexed", true},
	} {
		job := jobWith(c.apiVersion, c.kind)
		if c.mode != "" {
			job.Object["spec"] = map[string]any{"completionMode": c.mode}
		}
		if got := IndexedJob(job); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
