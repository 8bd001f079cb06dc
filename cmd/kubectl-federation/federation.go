package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
)

// target are the flags by which a command finds the federation and nothing else.
type target struct {
	kubeconfig, context, namespace, as string
	asGroups                           []string
}

func (t *target) addFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&t.kubeconfig, "kubeconfig", "", "kubeconfig file; without it $KUBECONFIG, else ~/.kube/config")
	f.StringVar(&t.context, "context", "", "context of the federation in the kubeconfig; without it the current context")
	f.StringVar(&t.as, "as", "", "user to impersonate at the federation")
	f.StringArrayVar(&t.asGroups, "as-group", nil, "group to impersonate at the federation; may be given several times")
	_ = c.RegisterFlagCompletionFunc("context", completeContexts) // fails only for a flag that is not there
}

// Federation is the API of the federation, seen by a command.
type Federation struct {
	Kube      kubernetes.Interface
	Dynamic   dynamic.Interface
	Metadata  metadata.Interface
	Namespace string
	// REST requests raw paths: reviews, and members behind clusters/NAME/proxy.
	REST rest.Interface
}

// config returns how to reach the federation, and the namespace.
func (t *target) config() (config *rest.Config, namespace string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = t.kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{
		CurrentContext: t.context, AuthInfo: clientcmdapi.AuthInfo{Impersonate: t.as, ImpersonateGroups: t.asGroups},
	})
	if config, err = loader.ClientConfig(); err != nil {
		return nil, "", fmt.Errorf("the federation (--kubeconfig, --context): %w", err)
	}
	if t.namespace != "" {
		return config, t.namespace, nil
	}
	namespace, _, err = loader.Namespace()
	return config, namespace, err
}

// connect makes the clients. No request is sent.
func (t *target) connect() (*Federation, error) {
	config, namespace, err := t.config()
	if err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NewWarningWriter(os.Stderr, rest.WarningWriterOptions{Deduplicate: true})
	return New(config, namespace)
}

// New makes the clients of a config, whose timeout and rate it sets. No request is sent.
func New(config *rest.Config, namespace string) (*Federation, error) {
	config = rest.CopyConfig(config)
	config.Timeout, config.QPS = reviewTimeout, -1
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

// reviewTimeout bounds one request: a review decides about every affected object.
const reviewTimeout = time.Minute

// PageSize is the number of objects per page.
const PageSize = 500

// ListPages calls each with every object of a resource, page by page.
func ListPages(ctx context.Context, r dynamic.ResourceInterface, o metav1.ListOptions, each func(*unstructured.Unstructured) error) error {
	o.Limit = PageSize
	if o.LabelSelector == "" {
		o.LabelSelector = v1beta1.NotRevisions
	}
	for {
		page, err := r.List(ctx, o)
		if err != nil {
			return err
		}
		for i := range page.Items {
			if err := each(&page.Items[i]); err != nil {
				return err
			}
		}
		if o.Continue = page.GetContinue(); o.Continue == "" {
			return nil
		}
	}
}

// ListMetadata returns list of the metadata only.
func (f *Federation) ListMetadata(ctx context.Context, r schema.GroupVersionResource, each func(metav1.Object)) error {
	o := metav1.ListOptions{Limit: PageSize, LabelSelector: v1beta1.NotRevisions}
	for {
		page, err := f.Metadata.Resource(r).List(ctx, o)
		if err != nil {
			return err
		}
		for i := range page.Items {
			each(&page.Items[i])
		}
		if o.Continue = page.Continue; o.Continue == "" {
			return nil
		}
	}
}

// Clusters returns all Clusters, by name.
func (f *Federation) Clusters(ctx context.Context) ([]*v1beta1.Cluster, error) {
	var all []*v1beta1.Cluster
	err := ListPages(ctx, f.Dynamic.Resource(v1beta1.ClustersResource), metav1.ListOptions{}, func(u *unstructured.Unstructured) error {
		c, err := ClusterOf(u)
		all = append(all, c)
		return err
	})
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, errors.New("the server has no Clusters: is it a federation? (--context names another one)")
	}
	slices.SortFunc(all, func(a, b *v1beta1.Cluster) int { return strings.Compare(a.Name, b.Name) })
	return all, mayNotSee(err)
}

// Policies returns the policies of a namespace, or of all if it is empty. A federation that serves none has none.
func (f *Federation) Policies(ctx context.Context, namespace string) ([]*v1beta1.PlacementPolicy, error) {
	var all []*v1beta1.PlacementPolicy
	err := ListPages(ctx, f.Dynamic.Resource(v1beta1.PoliciesResource).Namespace(namespace), metav1.ListOptions{}, func(u *unstructured.Unstructured) error {
		p := &v1beta1.PlacementPolicy{}
		all = append(all, p)
		return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p)
	})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return all, err
}

// Cluster returns one Cluster. If it does not exist, the error lists those that do.
func (f *Federation) Cluster(ctx context.Context, name string) (*v1beta1.Cluster, error) {
	u, err := f.Dynamic.Resource(v1beta1.ClustersResource).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, f.noSuchCluster(ctx, name)
	}
	if err != nil {
		return nil, mayNotSee(err)
	}
	return ClusterOf(u)
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

// UID returns the federation's UID, which marks its copies in members.
func (f *Federation) UID(ctx context.Context) (string, error) {
	ns, err := f.Kube.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("the federation's UID, that of its namespace kube-system: %w", err)
	}
	return string(ns.UID), nil
}

// Info reads the federation's configuration; nil if it does not publish it.
func (f *Federation) Info(ctx context.Context) (*v1beta1.Info, error) {
	m, err := f.Kube.CoreV1().ConfigMaps(v1beta1.FederationNamespace).Get(ctx, v1beta1.InfoConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	i, err := v1beta1.ParseInfo(m.Data)
	return &i, err
}
