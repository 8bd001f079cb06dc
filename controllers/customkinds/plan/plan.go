package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"federation/apiserver/apis/federation/v1beta1"
)

// Kind is a kind that a CustomResourceDefinition defines.
type Kind struct {
	// Definition is the name of the CustomResourceDefinition.
	Definition string
	// Resource is what the objects are read and written as: the version that they are stored in, if it is served.
	Resource schema.GroupVersionResource
	// Kind is its name.
	Kind string
	// Namespaced reports whether its objects have a namespace.
	Namespaced bool
	// Scale is where its objects have what the subresource scale shows.
	Scale Scale
}

// Scale has the fields of the status of a kind with the subresources scale and status: the number of replicas, and what selects their pods.
// They are "" where the number of replicas that are asked for is not spec.replicas, and where they are elsewhere or not at all.
type Scale struct{ Replicas, Selector string }

// Definition is what is read of a CustomResourceDefinition.
type Definition struct {
	Kind
	// Served are the versions that are served, sorted.
	Served []string
	// Established: its objects are served. Kept: the members have been given the definition.
	Established, Kept bool
}

// Read reads a CustomResourceDefinition.
func Read(u *unstructured.Unstructured) Definition {
	text := func(path ...string) string {
		s, _, _ := unstructured.NestedString(u.Object, path...)
		return s
	}
	d := Definition{Kind: Kind{
		Definition: u.GetName(), Kind: text("spec", "names", "kind"), Namespaced: text("spec", "scope") == "Namespaced",
		Resource: schema.GroupVersionResource{Group: text("spec", "group"), Resource: text("spec", "names", "plural")},
	}}
	versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		name, _ := version["name"].(string)
		if version["served"] != true {
			continue
		}
		d.Served = append(d.Served, name)
		if version["storage"] == true || d.Resource.Version == "" {
			d.Resource.Version, d.Scale = name, readScale(version)
		}
	}
	slices.Sort(d.Served)
	d.Established = v1beta1.ConditionOf(u, "Established")["status"] == "True"
	d.Kept = slices.Contains(u.GetFinalizers(), v1beta1.DeleteFromClustersFinalizer)
	return d
}

// readScale reads where objects of a version have what the subresource scale shows.
func readScale(version map[string]any) Scale {
	path := func(name string) string {
		s, _, _ := unstructured.NestedString(version, "subresources", "scale", name)
		return s
	}
	field := func(path string) string {
		if name, ok := strings.CutPrefix(path, ".status."); ok && !strings.ContainsAny(name, ".[") {
			return name
		}
		return ""
	}
	if _, status, _ := unstructured.NestedMap(version, "subresources", "status"); !status || path("specReplicasPath") != ".spec.replicas" {
		return Scale{}
	}
	return Scale{Replicas: field(path("statusReplicasPath")), Selector: field(path("labelSelectorPath"))}
}

// Find finds the definition of a kind, whatever versions it serves.
func Find(definitions []Definition, kind schema.GroupKind) (Kind, error) {
	for _, d := range definitions {
		if d.Established && d.Resource.Group == kind.Group && d.Kind.Kind == kind.Kind {
			return d.Kind, nil
		}
	}
	return Kind{}, fmt.Errorf("no CustomResourceDefinition defines kind %s in group %q", kind.Kind, kind.Group)
}

// Wanted returns the kinds that are federated, sorted by definition: those that a policy names, and those
// whose definition the members have been given. Their objects must be cleared when policies go; the
// definition itself stays with the members, for what is theirs would go with it.
func Wanted(definitions []Definition, policies []*v1beta1.PlacementPolicy) []Kind {
	named := map[schema.GroupVersionKind]bool{}
	for _, p := range policies {
		for _, s := range p.Spec.ResourceSelectors {
			named[schema.FromAPIVersionAndKind(s.APIVersion, s.Kind)] = true
		}
	}
	var wanted []Kind
	for _, d := range definitions {
		if d.Established && (d.Kept || d.named(named)) {
			wanted = append(wanted, d.Kind)
		}
	}
	slices.SortFunc(wanted, func(a, b Kind) int { return strings.Compare(a.Definition, b.Definition) })
	return wanted
}

func (d Definition) named(kinds map[schema.GroupVersionKind]bool) bool {
	return slices.ContainsFunc(d.Served, func(version string) bool {
		return kinds[schema.GroupVersionKind{Group: d.Resource.Group, Version: version, Kind: d.Kind.Kind}]
	})
}

// Resolve finds the definition of a kind that a policy names. The error says what there is instead.
func Resolve(definitions []Definition, apiVersion, kind string) (Kind, error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return Kind{}, err
	}
	for _, d := range definitions {
		switch {
		case d.Resource.Group != gv.Group || d.Kind.Kind != kind:
		case !d.Established:
			return Kind{}, fmt.Errorf("the CustomResourceDefinition %s is not established", d.Definition)
		case !slices.Contains(d.Served, gv.Version):
			return Kind{}, fmt.Errorf("the CustomResourceDefinition %s does not serve version %s: it serves %s", d.Definition, gv.Version, strings.Join(d.Served, ", "))
		default:
			return d.Kind, nil
		}
	}
	return Kind{}, fmt.Errorf("no CustomResourceDefinition defines kind %s in group %q", kind, gv.Group)
}
