package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
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

// Members reads objects in member clusters as the federation, through the Cluster's subresource inspect.
type Members struct {
	*Federation
	// Timeout bounds the wait for one response of a member.
	Timeout time.Duration
}

// NewMembers returns the members of a federation, each of whose answers is awaited until a timeout.
func NewMembers(f *Federation, timeout time.Duration) *Members {
	return &Members{Federation: f, Timeout: timeout}
}

// Get reads one object; nil, nil if it does not exist.
func (m *Members) Get(ctx context.Context, cluster string, r schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	err := m.read(ctx, cluster, resourcePath(r, namespace)+"/"+url.PathEscape(name), "", u)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return u, err
}

// List calls each with the objects of a resource, in a namespace or ("") in all, that match a selector: of at most four pages, for a member
// may have any number.
func (m *Members) List(ctx context.Context, cluster string, r schema.GroupVersionResource, namespace, selector string, each func(*unstructured.Unstructured)) error {
	query := url.Values{"labelSelector": {selector}, "limit": {strconv.Itoa(PageSize)}}
	for range 4 {
		page := &unstructured.UnstructuredList{}
		if err := m.read(ctx, cluster, resourcePath(r, namespace), query.Encode(), page); err != nil {
			return err
		}
		for i := range page.Items[:min(len(page.Items), PageSize)] {
			each(&page.Items[i])
		}
		if page.GetContinue() == "" {
			return nil
		}
		query.Set("continue", page.GetContinue())
	}
	return nil
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
	ctx, cancel := context.WithTimeout(ctx, m.Timeout)
	defer cancel()
	uri := "/apis/" + v1beta1.SchemeGroupVersion.String() + "/clusters/" + cluster + "/inspect" + path
	if query != "" {
		uri += "?" + query
	}
	body, err := doRaw(ctx, m.REST.Get().RequestURI(uri).MaxRetries(0))
	switch {
	case err == nil:
		return into.UnmarshalJSON(body)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s", m.Timeout)
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
