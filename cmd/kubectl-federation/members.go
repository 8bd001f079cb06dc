package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
)

// members reads objects in member clusters: through the Cluster's subresource proxy, where the member decides by the
// caller's own permissions; and where the federation may not act for others (join without --allow-proxy), with the
// federation's credential, if the caller may read that.
type members struct {
	*federation
	// timeout bounds the wait for one response of a member.
	timeout time.Duration

	mu     sync.Mutex
	direct map[string]rest.Interface // of members that the proxy could not be used for
}

func newMembers(f *federation, timeout time.Duration) *members {
	return &members{federation: f, timeout: timeout, direct: map[string]rest.Interface{}}
}

// get reads one object; nil, nil if it does not exist.
func (m *members) get(ctx context.Context, cluster string, r schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	err := m.read(ctx, cluster, resourcePath(r, namespace)+"/"+name, "", u)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return u, err
}

// list calls each with every object of a resource, in a namespace or ("") in all, that matches a selector.
func (m *members) list(ctx context.Context, cluster string, r schema.GroupVersionResource, namespace, selector string, each func(*unstructured.Unstructured)) error {
	query := url.Values{"labelSelector": {selector}, "limit": {strconv.Itoa(pageSize)}}
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
func (m *members) read(ctx context.Context, cluster, path, query string, into interface{ UnmarshalJSON([]byte) error }) error {
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	m.mu.Lock()
	direct := m.direct[cluster]
	m.mu.Unlock()
	if direct != nil {
		err := m.ask(ctx, direct, path, query, into)
		if apierrors.IsUnauthorized(err) { // the credential may have been renewed: read it again next time
			m.mu.Lock()
			delete(m.direct, cluster)
			m.mu.Unlock()
		}
		return err
	}
	err := m.ask(ctx, m.rest, proxyPath(cluster)+path, query, into)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "impersonate") {
		return err
	}
	client, noCredential := m.connectTo(ctx, cluster)
	if noCredential != nil {
		return fmt.Errorf("the cluster joined without --allow-proxy, and the federation's credential cannot be used: %w", noCredential)
	}
	m.mu.Lock()
	m.direct[cluster] = client
	m.mu.Unlock()
	return m.ask(ctx, client, path, query, into)
}

func proxyPath(cluster string) string {
	return "/apis/" + v1beta1.SchemeGroupVersion.String() + "/clusters/" + cluster + "/proxy"
}

func (m *members) ask(ctx context.Context, client rest.Interface, path, query string, into interface{ UnmarshalJSON([]byte) error }) error {
	uri := path
	if query != "" {
		uri += "?" + query
	}
	body, err := doRaw(ctx, client.Get().RequestURI(uri).MaxRetries(0))
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

// connectTo makes a client with the federation's credential for a member.
func (m *members) connectTo(ctx context.Context, cluster string) (rest.Interface, error) {
	config, err := storedClient(ctx, cluster, m.core, m.dyn)
	if err != nil {
		return nil, err
	}
	config.Timeout, config.QPS = m.timeout, -1
	return rawClient(config)
}

// rawClient makes a client for raw paths.
func rawClient(config *rest.Config) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/", &schema.GroupVersion{}
	config.NegotiatedSerializer = scheme.Codecs
	return rest.UnversionedRESTClientFor(config)
}

// eachMember asks members concurrently, at most 64 at once, and returns when all have answered or timed out.
func eachMember[T any](clusters []*v1beta1.Cluster, ask func(*v1beta1.Cluster) T) map[string]T {
	var mu sync.Mutex
	var wg sync.WaitGroup
	answers, slots := make(map[string]T, len(clusters)), make(chan struct{}, 64)
	for _, c := range clusters {
		wg.Add(1)
		slots <- struct{}{}
		go func() {
			defer func() { <-slots; wg.Done() }()
			answer := ask(c)
			mu.Lock()
			defer mu.Unlock()
			answers[c.Name] = answer
		}()
	}
	wg.Wait()
	return answers
}

// isOurCopy reports whether an object in a member is a copy of this federation's.
func isOurCopy(u *unstructured.Unstructured, uid string) bool {
	return u != nil && v1beta1.IsCopy(u, u.GroupVersionKind().GroupKind(), uid)
}
