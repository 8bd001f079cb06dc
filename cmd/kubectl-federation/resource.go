package main

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/restmapper"

	"federation/apiserver/apis/federation/v1beta1"
	propagationplan "federation/controllers/propagation/plan"
)

// Resource finds a kind as kubectl does: "rs", "replicaset", "ReplicaSet", "replicasets.apps".
func (f *Federation) Resource(word string) (schema.GroupVersionResource, bool, error) {
	cached := memory.NewMemCacheClient(f.Kube.Discovery())
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
	found, err := mapper.ResourceFor(asResource(word))
	if meta.IsNoMatchError(err) {
		return found, false, fmt.Errorf("kind %q: the federation serves none of that name; it spreads %s, and custom kinds that a PlacementPolicy names", word, SpreadKinds())
	}
	if err != nil {
		return found, false, err
	}
	kind, err := mapper.KindFor(found)
	if err != nil {
		return found, false, err
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return found, false, err
	}
	return mapping.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// asResource reads RESOURCE[.VERSION].GROUP or RESOURCE.
func asResource(word string) schema.GroupVersionResource {
	full, resource := schema.ParseResourceArg(strings.ToLower(word))
	if full != nil && len(full.Version) > 1 && full.Version[0] == 'v' && full.Version[1] >= '0' && full.Version[1] <= '9' {
		return *full
	}
	return resource.WithVersion("")
}

// staysHere returns why an object is in no cluster, whatever a policy says; "" if it may be. Groups of custom kinds
// have a dot, and Kubernetes has no types in them.
func staysHere(r schema.GroupVersionResource, namespace, name string) string {
	switch known := scheme.Scheme.IsGroupRegistered(r.Group) || r.Group == "apiregistration.k8s.io"; {
	case r.GroupResource() == propagationplan.CustomResourceDefinitions.Resource.GroupResource():
	case v1beta1.FederatedKindOf(r.GroupResource()) != nil:
		if !v1beta1.Federated(r.GroupResource(), namespace, name, "") {
			return fmt.Sprintf("%s %q stays at the federation: nothing of it, or of its namespace, goes to clusters", r.Resource, name)
		}
	case known || !strings.Contains(r.Group, "."):
		return fmt.Sprintf("%s stay at the federation: it spreads %s, and custom kinds that a PlacementPolicy names", r.GroupResource(), SpreadKinds())
	}
	return ""
}

func SpreadKinds() string {
	words := make([]string, 0, len(v1beta1.FederatedResources))
	for _, r := range v1beta1.FederatedResources {
		words = append(words, r.Resource)
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// objectArgs reads KIND/NAME or KIND NAME.
func objectArgs(args []string) (kind, name string, err error) {
	switch len(args) {
	case 1:
		kind, name, _ = strings.Cut(args[0], "/")
	case 2:
		kind, name = args[0], args[1]
	}
	if kind == "" || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("give one KIND/NAME, as replicaset/web, not %q", strings.Join(args, " "))
	}
	return kind, name, nil
}
