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
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
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

// AskEach asks members concurrently, at most 64 at once, and returns when all have answered or timed out.
func AskEach[T any](clusters []*v1beta1.Cluster, ask func(*v1beta1.Cluster) T) map[string]T {
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
