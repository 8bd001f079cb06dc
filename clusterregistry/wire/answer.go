package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// Apply applies an object that is given in JSON, and returns what came of it: an Answer of Kubernetes' own kinds, an
// *unstructured.Unstructured of others.
func (c *Client) Apply(ctx context.Context, r schema.GroupVersionResource, name types.NamespacedName, body []byte, o metav1.PatchOptions) (any, error) {
	if !scheme.Scheme.IsVersionRegistered(r.GroupVersion()) {
		u, err := c.plain.Resource(r).Namespace(name.Namespace).Patch(ctx, name.Name, types.ApplyPatchType, body, o)
		if err == nil {
			u.SetManagedFields(nil)
		}
		return u, err
	}
	path := pathOf(r, name)
	obj, err := c.applyDirectly(ctx, path, body, o)
	if errors.Is(err, errUnusual) {
		obj, err = c.answers.Patch(types.ApplyPatchType).AbsPath(path...).Body(body).
			SpecificallyVersionedParams(&o, scheme.ParameterCodec, schema.GroupVersion{Version: "v1"}).Do(ctx).Get()
	}
	if err != nil {
		return nil, err
	}
	if u, ok := obj.(*unstructured.Unstructured); ok { // of an API that does not speak protobuf
		u.SetManagedFields(nil)
		return u, nil
	}
	about, err := meta.Accessor(obj)
	return Answer{about}, err
}

func pathOf(r schema.GroupVersionResource, name types.NamespacedName) []string {
	path := []string{"apis", r.Group, r.Version}
	if r.Group == "" {
		path = []string{"api", r.Version}
	}
	if name.Namespace != "" {
		path = append(path, "namespaces", name.Namespace)
	}
	return append(path, r.Resource, name.Name)
}

// errorOf returns what an answer says that is an error and not in protobuf. To ask again by client-go would be a second request for each that a broken
// member, or something on the way, refuses.
func errorOf(code int, data []byte, path []string) error {
	var status metav1.Status
	if json.Unmarshal(data, &status) == nil && status.Kind == "Status" && status.Status == metav1.StatusFailure {
		return apierrors.FromObject(&status)
	}
	const most = 2048 // of what nobody knows the meaning of, as client-go has it
	text := strings.ToValidUTF8(string(data[:min(len(data), most)]), "?")
	about := schema.GroupResource{Resource: path[len(path)-2]}
	return apierrors.NewGenericServerResponse(code, "patch", about, path[len(path)-1], strings.TrimSpace(text), 0, true)
}

// errUnusual says that client-go has to ask, which knows what to do with any answer.
var errUnusual = errors.New("the answer is unusual")

// applyDirectly applies with no more than that takes: client-go's request costs twice as much. What it does beside, to wait where it is
// told to, is left to it: errUnusual.
func (c *Client) applyDirectly(ctx context.Context, path []string, body []byte, o metav1.PatchOptions) (runtime.Object, error) {
	if len(o.DryRun) > 0 {
		return nil, errUnusual
	}
	query := url.Values{"fieldManager": {o.FieldManager}}
	if o.Force != nil {
		query.Set("force", strconv.FormatBool(*o.Force))
	}
	if o.FieldValidation != "" {
		query.Set("fieldValidation", o.FieldValidation)
	}
	to := c.base.JoinPath(path...)
	to.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header = http.Header{
		"Accept": {runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON}, "Content-Type": {string(types.ApplyPatchType)},
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	says := response.Header.Get("Content-Type")
	media, _, _ := mime.ParseMediaType(says) // "" is neither
	binary := media == runtime.ContentTypeProtobuf
	failed := response.StatusCode < http.StatusOK || response.StatusCode >= http.StatusMultipleChoices
	if failed && response.Header.Get("Retry-After") != "" {
		return nil, errUnusual
	}
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if failed && !binary {
		return nil, errorOf(response.StatusCode, data, path)
	}
	if !binary && media != runtime.ContentTypeJSON {
		return nil, fmt.Errorf("the answer has the content type %q: must be protobuf or JSON", says)
	}
	if !binary {
		u := &unstructured.Unstructured{}
		return u, u.UnmarshalJSON(data)
	}
	obj, _, err := c.typed.Decode(data, nil, nil)
	if status, is := obj.(*metav1.Status); is && err == nil && status.Status != metav1.StatusSuccess {
		return nil, apierrors.FromObject(status)
	}
	return obj, err
}

// Answer is an object as it was read from an answer. To make it unstructured would cost more than what is asked of most.
type Answer struct{ metav1.Object }

// Typed returns it as it was read.
func (a Answer) Typed() any { return a.Object }

// OnlyStatusDiffers is as of what informers hold. It is never sure here.
func (a Answer) OnlyStatusDiffers(any) bool { return false }

// Unpack returns it unstructured.
func (a Answer) Unpack() *unstructured.Unstructured {
	obj := a.Object.(runtime.Object)
	u, err := unstructure(obj, obj.GetObjectKind().GroupVersionKind())
	if err != nil {
		panic("what was read from an API cannot be written: " + err.Error())
	}
	return u
}

// slimmed reads objects from protobuf.
type slimmed reader

// Decode implements runtime.Decoder.
func (s slimmed) Decode(data []byte, defaults *schema.GroupVersionKind, _ runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, kind, err := s.typed.Decode(data, defaults, nil)
	if about, ok := obj.(metav1.Object); ok {
		s.slim(about)
	}
	return obj, kind, err
}

// Encode implements runtime.Encoder.
func (slimmed) Encode(runtime.Object, io.Writer) error { return errReads }

// Identifier implements runtime.Encoder.
func (slimmed) Identifier() runtime.Identifier { return "typed from protobuf" }

var errReads = errors.New("protobuf is only read here")
