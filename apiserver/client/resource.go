package client

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"

	"federation/apiserver/apis/federation/v1beta1"
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

// SpreadKinds lists the built-in kinds that a federation spreads.
func SpreadKinds() string {
	words := make([]string, 0, len(v1beta1.FederatedResources))
	for _, r := range v1beta1.FederatedResources {
		words = append(words, r.Resource)
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}
