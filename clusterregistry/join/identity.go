package join

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// refuseAlias keeps a cluster from joining by a second name, also where nothing in it says that it has joined: the federation would not
// use it by that name.
func (r *Request) refuseAlias(ctx context.Context) error {
	ns, err := r.Member.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil // its identity is not known
	}
	if err != nil {
		return fmt.Errorf("in the cluster that joins: namespace %s, whose UID names the cluster: %w", metav1.NamespaceSystem, err)
	}
	clusters, err := r.FederationDynamic.Resource(v1beta1.ClustersResource).List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		return nil // who may only make Clusters finds it out by the condition
	}
	if err != nil {
		return fmt.Errorf("at the federation: %w", err)
	}
	for _, c := range clusters.Items {
		switch uid, _, _ := unstructured.NestedString(c.Object, "status", "uid"); {
		case c.GetName() != r.Name && uid == string(ns.UID):
			return fmt.Errorf("it is a member of this federation already, as %q (UID %s): unjoin that first", c.GetName(), uid)
		case c.GetName() == r.Name && uid != "" && uid != string(ns.UID):
			r.say("Cluster %s was another cluster until now, or this one was installed again: its UID was %s and is %s", r.Name, uid, ns.UID)
		}
	}
	return nil
}
