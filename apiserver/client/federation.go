// Package client reads and changes a federation as tools of its users do: with a user's own rights, page by page, and with errors that say
// what the user can do about them. Members sees what is in the clusters behind it.
package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
)

// Federation is the API of a federation, as one user reaches it.
type Federation struct {
	Kube     kubernetes.Interface
	Dynamic  dynamic.Interface
	Metadata metadata.Interface
	// REST requests raw paths: reviews, and members behind clusters/NAME/proxy.
	REST rest.Interface
	// Namespace is the one that the user means.
	Namespace string
}

// requestTimeout bounds one request: a review decides about every affected object.
const requestTimeout = time.Minute

// New makes the clients of a config, whose timeout and rate it sets. No request is sent.
func New(config *rest.Config, namespace string) (*Federation, error) {
	config = rest.CopyConfig(config)
	config.Timeout, config.QPS = requestTimeout, -1
	f := &Federation{Namespace: namespace}
	errs := make([]error, 3)
	f.Kube, errs[0] = kubernetes.NewForConfig(config)
	f.Dynamic, errs[1] = dynamic.NewForConfig(config)
	f.Metadata, errs[2] = metadata.NewForConfig(config)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	f.REST = f.Kube.Discovery().RESTClient()
	return f, nil
}

// UID returns the federation's UID, which marks its copies in members.
func (f *Federation) UID(ctx context.Context) (string, error) {
	ns, err := f.Kube.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("the federation's UID, that of its namespace kube-system: %w", err)
	}
	return string(ns.UID), nil
}

// Clusters returns all Clusters, by name.
func (f *Federation) Clusters(ctx context.Context) ([]*v1beta1.Cluster, error) {
	all, err := ReadAll[v1beta1.Cluster](ctx, f.Dynamic.Resource(v1beta1.ClustersResource))
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, errors.New("the server has no Clusters: is it a federation? (--context names another one)")
	}
	slices.SortFunc(all, func(a, b *v1beta1.Cluster) int { return strings.Compare(a.Name, b.Name) })
	return all, mayNotSee(err)
}

// Cluster returns one Cluster. If it does not exist, the error lists those that do.
func (f *Federation) Cluster(ctx context.Context, name string) (*v1beta1.Cluster, error) {
	c, err := Read[v1beta1.Cluster](ctx, f.Dynamic.Resource(v1beta1.ClustersResource), name)
	if apierrors.IsNotFound(err) {
		return nil, f.noSuchCluster(ctx, name)
	}
	return c, mayNotSee(err)
}

// mayNotSee adds to a refused read of Clusters what an administrator can do: none of Kubernetes' own roles covers them.
func mayNotSee(err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return fmt.Errorf("%w\nan administrator can let you see Clusters: kubectl create clusterrolebinding NAME --clusterrole federation-cluster-viewer --user YOU", err)
}

func (f *Federation) noSuchCluster(ctx context.Context, name string) error {
	all, err := f.Clusters(ctx)
	if err != nil {
		return err
	}
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.Name
	}
	return fmt.Errorf("cluster %q not found; there are: %s", name, phrase.Some(names))
}

// Policies returns the policies of a namespace, or of all if it is empty. A federation that serves none has none.
func (f *Federation) Policies(ctx context.Context, namespace string) ([]*v1beta1.PlacementPolicy, error) {
	all, err := ReadAll[v1beta1.PlacementPolicy](ctx, f.Dynamic.Resource(v1beta1.PoliciesResource).Namespace(namespace))
	return all, IgnoreNotFound(err)
}

// Grants returns all DNSNameGrants. A federation that serves none has none.
func (f *Federation) Grants(ctx context.Context) ([]*v1beta1.DNSNameGrant, error) {
	all, err := ReadAll[v1beta1.DNSNameGrant](ctx, f.Dynamic.Resource(v1beta1.DNSNameGrantsResource))
	return all, IgnoreNotFound(err)
}
