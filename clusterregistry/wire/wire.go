// Package wire reads APIs at little cost, in protobuf where they speak it: Kubernetes' own kinds. Whoever uses its clients
// and informers sees unstructured objects. Most of what a controller's process spends goes into reading what it watches,
// and most of its memory into holding that.
package wire

import (
	"io"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// Slim takes off an object what nobody is to see of it, before that costs anything.
type Slim func(metav1.Object)

// NewDynamic makes a dynamic client of an API. What it reads of Kubernetes' own kinds comes in protobuf, is slimmed, and
// has the fields that these kinds have in this program's version: a newer API's new ones are not among them. What it
// sends is sent as it is given. Other kinds are read in JSON, as they are.
func NewDynamic(config *rest.Config, client *http.Client, slim Slim) (*Client, error) {
	plain, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	binary := dynamic.ConfigFor(config)
	binary.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	binary.APIPath = "/" // dynamic clients make whole paths
	read := reader{protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), slim}
	raw, err := read.client(binary, client, read)
	if err != nil {
		return nil, err
	}
	answers, err := read.client(binary, client, slimmed(read))
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	return &Client{plain, dynamic.New(raw), answers, slimmed(read), client, base}, nil
}

// Protobuf is the config for a typed client: it speaks protobuf, and reads JSON of kinds that have none.
func Protobuf(config *rest.Config) *rest.Config {
	binary := rest.CopyConfig(config)
	binary.AcceptContentTypes, binary.ContentType = runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON, runtime.ContentTypeProtobuf
	return binary
}

// Client is a dynamic client.
type Client struct {
	plain, binary dynamic.Interface
	answers       rest.Interface
	typed         slimmed
	http          *http.Client
	base          *url.URL
}

// Resource implements dynamic.Interface.
func (c *Client) Resource(r schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	if scheme.Scheme.IsVersionRegistered(r.GroupVersion()) {
		return c.binary.Resource(r)
	}
	return c.plain.Resource(r)
}

// negotiated adds protobuf to what a dynamic client reads.
type negotiated struct {
	runtime.NegotiatedSerializer
	protobuf runtime.SerializerInfo
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (n negotiated) SupportedMediaTypes() []runtime.SerializerInfo {
	return append(n.NegotiatedSerializer.SupportedMediaTypes(), n.protobuf)
}

// client makes a client that reads protobuf with a serializer.
func (r reader) client(config *rest.Config, client *http.Client, with runtime.Serializer) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = negotiated{config.NegotiatedSerializer, runtime.SerializerInfo{
		MediaType: runtime.ContentTypeProtobuf, MediaTypeType: "application", MediaTypeSubType: "vnd.kubernetes.protobuf",
		Serializer: with,
		StreamSerializer: &runtime.StreamSerializerInfo{
			Serializer: protobuf.NewRawSerializer(scheme.Scheme, scheme.Scheme), Framer: protobuf.LengthDelimitedFramer,
		},
	}}
	return rest.UnversionedRESTClientForConfigAndClient(config, client)
}

// reader reads objects and lists of them from protobuf, and makes them unstructured.
type reader struct {
	typed runtime.Serializer
	slim  Slim
}

// Decode implements runtime.Decoder. A Status stays one, as dynamic clients expect.
func (r reader) Decode(data []byte, _ *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, kind, err := r.typed.Decode(data, nil, nil)
	if err != nil {
		return nil, kind, err
	}
	if status, ok := obj.(*metav1.Status); ok {
		if asked, ok := into.(*metav1.Status); ok {
			*asked = *status
		}
		return obj, kind, nil
	}
	if meta.IsListType(obj) {
		list, ok := into.(*unstructured.UnstructuredList)
		if !ok {
			list = &unstructured.UnstructuredList{}
		}
		return list, kind, r.list(list, obj, *kind)
	}
	u, ok := into.(*unstructured.Unstructured)
	if !ok {
		u = &unstructured.Unstructured{}
	}
	return u, kind, r.object(u, obj, *kind)
}

func (r reader) list(to *unstructured.UnstructuredList, from runtime.Object, kind schema.GroupVersionKind) error {
	about, err := meta.ListAccessor(from)
	if err != nil {
		return err
	}
	to.Object, to.Items = map[string]any{}, make([]unstructured.Unstructured, 0, meta.LenList(from))
	to.SetGroupVersionKind(kind)
	to.SetResourceVersion(about.GetResourceVersion())
	to.SetContinue(about.GetContinue())
	to.SetRemainingItemCount(about.GetRemainingItemCount())
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	return meta.EachListItem(from, func(item runtime.Object) error {
		var u unstructured.Unstructured
		err := r.object(&u, item, kind)
		to.Items = append(to.Items, u)
		return err
	})
}

func (r reader) object(to *unstructured.Unstructured, from runtime.Object, kind schema.GroupVersionKind) error {
	about, err := meta.Accessor(from)
	if err != nil {
		return err
	}
	r.slim(about)
	u, err := unstructure(from, kind)
	if err != nil {
		return err
	}
	to.Object = u.Object
	return nil
}

// Encode implements runtime.Encoder. Dynamic clients send JSON.
func (reader) Encode(runtime.Object, io.Writer) error { return errReads }

// Identifier implements runtime.Encoder.
func (reader) Identifier() runtime.Identifier { return "unstructured from protobuf" }
