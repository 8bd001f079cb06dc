package memapi

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// Request is what a client asks of an API.
type Request struct {
	// Verb is get, list, watch, create, update, patch, apply or delete.
	Verb      string
	Resource  schema.GroupVersionResource
	Namespace string
	// Name is empty for lists and watches.
	Name        string
	Subresource string
	// Object is what comes along with a create, update or apply.
	Object *unstructured.Unstructured
	// Sent is when the client sent it.
	Sent time.Time
}

// Writes reports whether the request asks for a change.
func (r Request) Writes() bool { return r.Verb != "get" && r.Verb != "list" && r.Verb != "watch" }

// Wire is what lies between a client and an API. It has the request carried out by calling do, or not; what it
// returns is what the client gets to see. It may take its time, and call do after it has returned.
type Wire func(ctx context.Context, r Request, do func() error) error

// Client is a dynamic.Interface of an API. User is the field manager of requests that name none.
type Client struct {
	api  *API
	user string
	wire Wire
	// Slim, where it is set, takes off an object that a request answers with what nobody is to see.
	Slim func(metav1.Object)

	mu      sync.Mutex
	watches map[*watcher]bool
	silent  bool
	asOf    uint64
}

var _ dynamic.Interface = &Client{}

// Client returns a client whose requests go over the wire; nil is one that does nothing to them.
func (a *API) Client(user string, wire Wire) *Client {
	if wire == nil {
		wire = func(ctx context.Context, _ Request, do func() error) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return do()
		}
	}
	return &Client{api: a, user: user, wire: wire, watches: map[*watcher]bool{}}
}

// Silence holds the events of the client's watches back, or lets them through again.
func (c *Client) Silence(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silent = on
	for w := range c.watches {
		w.silence(on)
	}
}

// Lag has reads that allow it, by resourceVersion 0, answered as of a version, as an API server does that is behind. 0 ends it.
func (c *Client) Lag(asOf uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asOf = asOf
}

// version is that as of which a read is answered: 0 for what is there now.
func (c *Client) version(asked string) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if asked != "0" {
		return 0
	}
	return c.asOf
}

// Break ends the client's watches.
func (c *Client) Break() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.watches {
		w.Stop()
	}
}

// keep remembers a watch until it ends.
func (c *Client) keep(w *watcher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watches[w] = true
	w.silence(c.silent)
	go func() {
		<-w.done
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.watches, w)
	}()
}

// Resource implements dynamic.Interface.
func (c *Client) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return resource{client: c, gvr: gvr}
}

// resource is what a client can do with one resource, in one namespace.
type resource struct {
	client    *Client
	gvr       schema.GroupVersionResource
	namespace string
}

// Namespace implements dynamic.NamespaceableResourceInterface.
func (r resource) Namespace(name string) dynamic.ResourceInterface {
	r.namespace = name
	return r
}

func (r resource) request(verb, name string, subresources []string) Request {
	q := Request{Verb: verb, Resource: r.gvr, Namespace: r.namespace, Name: name, Sent: time.Now()}
	if len(subresources) > 0 {
		q.Subresource = subresources[0]
	}
	return q
}

// call sends a request whose answer is an object.
func (r resource) call(ctx context.Context, q Request, do func(s *store) (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	var out *unstructured.Unstructured
	err := r.client.wire(ctx, q, func() error { // perhaps after ctx is done: an API finishes what it has begun
		s, err := r.client.api.find(r.gvr)
		if err == nil {
			out, err = do(s)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if r.client.Slim != nil && out != nil {
		r.client.Slim(out)
	}
	return out, nil
}

func (r resource) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: r.namespace, Name: name}
}

// Create implements dynamic.ResourceInterface.
func (r resource) Create(ctx context.Context, obj *unstructured.Unstructured, o metav1.CreateOptions, sub ...string) (*unstructured.Unstructured, error) {
	q := r.request("create", obj.GetName(), sub)
	q.Object = obj
	return r.call(ctx, q, func(s *store) (*unstructured.Unstructured, error) {
		name := obj.GetName()
		if name == "" {
			name = obj.GetGenerateName() + strconv.FormatUint(r.client.api.Version(), 36)
		}
		if obj.GetResourceVersion() != "" {
			return nil, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
		}
		w := write{store: s, key: r.key(name), create: true}
		w.change = func(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			if live != nil {
				return nil, apierrors.NewAlreadyExists(s.GroupResource(), name)
			}
			next := normalize(obj)
			next.SetUID("")
			return r.client.api.updated(w, empty(s.Resource), next, r.manager(o.FieldManager))
		}
		return r.client.api.do(w)
	})
}

func (r resource) manager(name string) string {
	if name == "" {
		return r.client.user
	}
	return name
}

func empty(r Resource) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(r.gvk())
	return u
}

// Update implements dynamic.ResourceInterface.
func (r resource) Update(ctx context.Context, obj *unstructured.Unstructured, o metav1.UpdateOptions, sub ...string) (*unstructured.Unstructured, error) {
	q := r.request("update", obj.GetName(), sub)
	q.Object = obj
	return r.call(ctx, q, func(s *store) (*unstructured.Unstructured, error) {
		w := write{store: s, key: r.key(obj.GetName()), subresource: q.Subresource}
		w.change = func(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return r.client.api.updated(w, live, normalize(obj), r.manager(o.FieldManager))
		}
		return r.client.api.do(w)
	})
}

// UpdateStatus implements dynamic.ResourceInterface.
func (r resource) UpdateStatus(ctx context.Context, obj *unstructured.Unstructured, o metav1.UpdateOptions) (*unstructured.Unstructured, error) {
	return r.Update(ctx, obj, o, "status")
}

// Delete implements dynamic.ResourceInterface.
func (r resource) Delete(ctx context.Context, name string, o metav1.DeleteOptions, sub ...string) error {
	_, err := r.call(ctx, r.request("delete", name, sub), func(s *store) (*unstructured.Unstructured, error) {
		return nil, r.client.api.delete(s, r.key(name), o)
	})
	return err
}

// DeleteCollection implements dynamic.ResourceInterface.
func (r resource) DeleteCollection(context.Context, metav1.DeleteOptions, metav1.ListOptions) error {
	return apierrors.NewMethodNotSupported(r.gvr.GroupResource(), "deletecollection")
}

// Get implements dynamic.ResourceInterface.
func (r resource) Get(ctx context.Context, name string, o metav1.GetOptions, sub ...string) (*unstructured.Unstructured, error) {
	return r.call(ctx, r.request("get", name, sub), func(s *store) (*unstructured.Unstructured, error) {
		if u := r.client.api.getAsOf(s, r.key(name), r.client.version(o.ResourceVersion)); u != nil {
			return copyOf(u), nil
		}
		return nil, apierrors.NewNotFound(s.GroupResource(), name)
	})
}

// List implements dynamic.ResourceInterface.
func (r resource) List(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	out := &unstructured.UnstructuredList{Object: map[string]any{}}
	_, err := r.call(ctx, r.request("list", "", nil), func(s *store) (*unstructured.Unstructured, error) {
		selector, err := labels.Parse(o.LabelSelector)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		a := r.client.api
		a.mu.Lock()
		defer a.mu.Unlock()
		out.SetAPIVersion(s.GroupVersion().String())
		out.SetKind(s.Kind + "List")
		version, objects := a.version, s.objects
		if asOf := r.client.version(o.ResourceVersion); asOf != 0 {
			version, objects = asOf, s.before(asOf)
		}
		out.SetResourceVersion(strconv.FormatUint(version, 10))
		for _, u := range listed(objects, r.namespace, selector) {
			out.Items = append(out.Items, *copyOf(u))
		}
		return nil, nil
	})
	return out, err
}

// Watch implements dynamic.ResourceInterface.
func (r resource) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	var out *watcher
	_, err := r.call(ctx, r.request("watch", "", nil), func(s *store) (*unstructured.Unstructured, error) {
		var err error
		out, err = r.client.api.watch(ctx, s, r.namespace, o)
		return nil, err
	})
	if err != nil {
		return nil, err
	}
	r.client.keep(out)
	return out, nil
}

// Patch implements dynamic.ResourceInterface. It takes merge patches, JSON patches and, in JSON, what is to be applied.
func (r resource) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, o metav1.PatchOptions, sub ...string) (*unstructured.Unstructured, error) {
	q := r.request("patch", name, sub)
	if pt == types.ApplyPatchType {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(data); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return r.Apply(ctx, name, u, metav1.ApplyOptions{FieldManager: o.FieldManager, Force: o.Force != nil && *o.Force}, sub...)
	}
	return r.call(ctx, q, func(s *store) (*unstructured.Unstructured, error) {
		w := write{store: s, key: r.key(name), subresource: q.Subresource}
		w.change = func(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			next, err := patched(live, pt, data)
			if err != nil {
				return nil, err
			}
			return r.client.api.updated(w, live, next, r.manager(o.FieldManager))
		}
		return r.client.api.do(w)
	})
}

// Apply implements dynamic.ResourceInterface.
func (r resource) Apply(ctx context.Context, name string, obj *unstructured.Unstructured, o metav1.ApplyOptions, sub ...string) (*unstructured.Unstructured, error) {
	if obj.GetName() != "" && obj.GetName() != name {
		return nil, fmt.Errorf("name is %q, but metadata.name %q", name, obj.GetName())
	}
	if obj.GetManagedFields() != nil {
		return nil, errors.New("metadata.managedFields must be nil in what is applied")
	}
	q := r.request("apply", name, sub)
	q.Object = obj
	return r.call(ctx, q, func(s *store) (*unstructured.Unstructured, error) {
		w := write{store: s, key: r.key(name), subresource: q.Subresource, create: q.Subresource == ""}
		w.change = func(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return r.client.api.applied(w, live, normalize(obj), r.manager(o.FieldManager), o.Force)
		}
		return r.client.api.do(w)
	})
}

// ApplyStatus implements dynamic.ResourceInterface.
func (r resource) ApplyStatus(ctx context.Context, name string, obj *unstructured.Unstructured, o metav1.ApplyOptions) (*unstructured.Unstructured, error) {
	return r.Apply(ctx, name, obj, o, "status")
}
