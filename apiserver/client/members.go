package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/credential"
	"federation/controllers/supervisor"
)

// Members reads objects in member clusters: through the Cluster's subresource proxy, where the member decides by the
// caller's own permissions; and where the federation may not act for others (join without --allow-proxy), as the
// federation, if the caller may do that.
type Members struct {
	*Federation
	// timeout bounds the wait for one response of a member.
	timeout time.Duration

	inspected sync.Map // name of a cluster that the proxy could not be used for → true
}

// NewMembers returns the members of a federation, each of whose answers is awaited until a timeout.
func NewMembers(f *Federation, timeout time.Duration) *Members {
	return &Members{Federation: f, timeout: timeout}
}

// Get reads one object; nil, nil if it does not exist.
func (m *Members) Get(ctx context.Context, cluster string, r schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	err := m.read(ctx, cluster, resourcePath(r, namespace)+"/"+name, "", u)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return u, err
}

// List calls each with every object of a resource, in a namespace or ("") in all, that matches a selector.
func (m *Members) List(ctx context.Context, cluster string, r schema.GroupVersionResource, namespace, selector string, each func(*unstructured.Unstructured)) error {
	query := url.Values{"labelSelector": {selector}, "limit": {strconv.Itoa(PageSize)}}
	for {
		page := &unstructured.UnstructuredList{}
		if err := m.read(ctx, cluster, resourcePath(r, namespace), query.Encode(), page); err != nil {
			return err
		}
		for i := range page.Items {
			each(&page.Items[i])
		}
		if page.GetContinue() == "" {
			return nil
		}
		query.Set("continue", page.GetContinue())
	}
}

func resourcePath(r schema.GroupVersionResource, namespace string) string {
	path := "/apis/" + r.Group + "/" + r.Version
	if r.Group == "" {
		path = "/api/" + r.Version
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + r.Resource
}

// read asks a member for a path.
func (m *Members) read(ctx context.Context, cluster, path, query string, into interface{ UnmarshalJSON([]byte) error }) error {
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	if _, as := m.inspected.Load(cluster); !as {
		err := m.ask(ctx, clusterPath(cluster, "proxy")+path, query, into)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "impersonate") {
			return err
		}
		m.inspected.Store(cluster, true)
	}
	err := m.ask(ctx, clusterPath(cluster, "inspect")+path, query, into)
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("the cluster joined without --allow-proxy, and to read there as the federation takes the role federation-cluster-inspector: %w", err)
	}
	return err
}

func clusterPath(cluster, subresource string) string {
	return "/apis/" + v1beta1.SchemeGroupVersion.String() + "/clusters/" + cluster + "/" + subresource
}

func (m *Members) ask(ctx context.Context, path, query string, into interface{ UnmarshalJSON([]byte) error }) error {
	uri := path
	if query != "" {
		uri += "?" + query
	}
	body, err := doRaw(ctx, m.REST.Get().RequestURI(uri).MaxRetries(0))
	switch {
	case err == nil:
		return into.UnmarshalJSON(body)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s", m.timeout)
	}
	return err
}

// doRaw sends a request and returns the body of the response, or the server's error.
func doRaw(ctx context.Context, r *rest.Request) ([]byte, error) {
	result := r.SetHeader("Accept", "application/json").Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// mostAsked is how many members are asked at once.
const mostAsked = 64

// AskEach asks members concurrently, and returns when all have answered or timed out.
func AskEach[T any](ctx context.Context, clusters []*v1beta1.Cluster, ask func(*v1beta1.Cluster) T) (map[string]T, error) {
	answers := make(map[string]T, len(clusters))
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(mostAsked)
	for _, c := range clusters {
		group.Go(supervisor.Protected(ctx, "members", func(context.Context) error {
			answer := ask(c)
			mu.Lock()
			defer mu.Unlock()
			answers[c.Name] = answer
			return nil
		}))
	}
	return answers, group.Wait()
}

// StoredConfig returns how to reach a cluster with the credential that the federation has of it.
func (f *Federation) StoredConfig(ctx context.Context, name string) (*rest.Config, error) {
	c, err := Read[v1beta1.Cluster](ctx, f.Dynamic.Resource(v1beta1.ClustersResource), name)
	if err != nil {
		return nil, err
	}
	if c.IsPull() {
		return nil, errors.New("its agent connects to the federation, which has no credential of it: give --member-kubeconfig or --member-context")
	}
	if c.Spec.SecretRef == nil {
		return nil, errors.New("the Cluster names no Secret")
	}
	secret, err := f.Kube.CoreV1().Secrets(v1beta1.FederationNamespace).Get(ctx, c.Spec.SecretRef.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	local, err := credential.LocalAddresses()
	if err != nil {
		return nil, err
	}
	config, token, err := credential.Config(c, secret, local)
	if err != nil {
		return nil, err
	}
	config.BearerToken = token
	return config, nil
}
