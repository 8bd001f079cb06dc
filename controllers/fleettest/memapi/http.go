package memapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
)

// Transport carries the requests of HTTP clients to an API, as those of a Client. It takes and answers JSON. Fields can be selected by metadata.name alone.
type Transport struct{ Client *Client }

// RoundTrip implements http.RoundTripper.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.carryOut(r)
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		s := status.Status()
		s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		return response(r, int(s.Code), &s)
	}
	if err != nil {
		return nil, err
	}
	if w, ok := answer.(*selectedWatch); ok {
		return &http.Response{StatusCode: http.StatusOK, Header: jsonHeader(), Request: r, Body: stream(r.Context(), w)}, nil
	}
	return response(r, http.StatusOK, answer)
}

func jsonHeader() http.Header { return http.Header{"Content-Type": {runtime.ContentTypeJSON}} }

func response(r *http.Request, code int, answer any) (*http.Response, error) {
	body, err := json.Marshal(answer)
	return &http.Response{StatusCode: code, Header: jsonHeader(), Request: r, Body: io.NopCloser(bytes.NewReader(body))}, err
}

// target is what the path of a request names.
type target struct {
	resource                     schema.GroupVersionResource
	namespace, name, subresource string
}

func parsePath(path string) (t target, err error) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		t.resource.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		t.resource.Group, t.resource.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return t, apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, path, "404 page not found", 0, true)
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		t.namespace, parts = parts[1], parts[2:]
	}
	parts = slices.Concat(parts, []string{"", ""})
	t.resource.Resource, t.name, t.subresource = parts[0], parts[1], parts[2]
	return t, nil
}

// carryOut returns an object, a list or a watch.
func (t Transport) carryOut(r *http.Request) (any, error) {
	var body []byte
	if r.Body != nil {
		defer func() { _ = r.Body.Close() }() // it has been read
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	to, err := parsePath(r.URL.Path)
	if err != nil {
		return nil, err
	}
	var resource dynamic.ResourceInterface = t.Client.Resource(to.resource)
	if to.namespace != "" {
		resource = t.Client.Resource(to.resource).Namespace(to.namespace)
	}
	if r.Method == http.MethodGet && to.name == "" {
		return listOrWatch(r, resource)
	}
	return carryOutOne(r, resource, to, body)
}

// decodeOptions reads options from the query of a request.
func decodeOptions[T any](r *http.Request, into *T) (T, error) {
	err := scheme.ParameterCodec.DecodeParameters(r.URL.Query(), schema.GroupVersion{Version: "v1"}, any(into).(runtime.Object))
	return *into, err
}

func carryOutOne(r *http.Request, resource dynamic.ResourceInterface, to target, body []byte) (any, error) {
	ctx, sub := r.Context(), []string{}
	if to.subresource != "" {
		sub = append(sub, to.subresource)
	}
	u := &unstructured.Unstructured{}
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		if err := u.UnmarshalJSON(body); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	switch r.Method {
	case http.MethodGet:
		o, err := decodeOptions(r, &metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return resource.Get(ctx, to.name, o, sub...)
	case http.MethodPost:
		o, err := decodeOptions(r, &metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		return resource.Create(ctx, u, o, sub...)
	case http.MethodPut:
		o, err := decodeOptions(r, &metav1.UpdateOptions{})
		if err != nil {
			return nil, err
		}
		return resource.Update(ctx, u, o, sub...)
	case http.MethodPatch:
		o, err := decodeOptions(r, &metav1.PatchOptions{})
		if err != nil {
			return nil, err
		}
		return resource.Patch(ctx, to.name, types.PatchType(r.Header.Get("Content-Type")), body, o, sub...)
	case http.MethodDelete:
		var o metav1.DeleteOptions
		if len(body) > 0 {
			if err := json.Unmarshal(body, &o); err != nil {
				return nil, apierrors.NewBadRequest(err.Error())
			}
		}
		return &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}, resource.Delete(ctx, to.name, o, sub...)
	}
	return nil, apierrors.NewMethodNotSupported(to.resource.GroupResource(), r.Method)
}

func listOrWatch(r *http.Request, resource dynamic.ResourceInterface) (any, error) {
	o, err := decodeOptions(r, &metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	selector, err := fields.ParseSelector(o.FieldSelector)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	selects := func(u *unstructured.Unstructured) bool {
		return selector.Matches(fields.Set{"metadata.name": u.GetName()})
	}
	if o.Watch {
		w, err := resource.Watch(r.Context(), o)
		if err != nil {
			return nil, err
		}
		return &selectedWatch{w, selects}, nil
	}
	list, err := resource.List(r.Context(), o)
	if err != nil {
		return nil, err
	}
	list.Items = slices.DeleteFunc(list.Items, func(u unstructured.Unstructured) bool { return !selects(&u) })
	return list, nil
}

// selectedWatch is a watch of which only the objects that are selected count.
type selectedWatch struct {
	watch.Interface
	selects func(*unstructured.Unstructured) bool
}

// stream returns the events of a watch, as a body that ends with it. To close the body, or the end of ctx, ends the watch.
func stream(ctx context.Context, w *selectedWatch) io.ReadCloser {
	out, in := io.Pipe()
	go func() {
		defer w.Stop()
		to := json.NewEncoder(in)
		for {
			select {
			case <-ctx.Done():
				_ = in.CloseWithError(ctx.Err()) // never fails
				return
			case e, ok := <-w.ResultChan():
				if u, is := e.Object.(*unstructured.Unstructured); is && e.Type != watch.Bookmark && !w.selects(u) {
					continue
				}
				if !ok || to.Encode(map[string]any{"type": e.Type, "object": e.Object}) != nil {
					_ = in.Close() // never fails
					return
				}
			}
		}
	}()
	return &body{out, w}
}

// body is what a watch sends.
type body struct {
	*io.PipeReader
	watch watch.Interface
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.watch.Stop()
	return b.PipeReader.Close()
}
