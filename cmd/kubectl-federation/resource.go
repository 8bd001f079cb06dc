package main

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
	propagationplan "federation/controllers/propagation/plan"
)

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
		return fmt.Sprintf("%s stay at the federation: it spreads %s, and custom kinds that a PlacementPolicy names", r.GroupResource(), client.SpreadKinds())
	}
	return ""
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
