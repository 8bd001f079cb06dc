package views

import (
	"bytes"
	"context"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"federation/apiserver/registry/views/canonical"
)

// format is an encoding in which lists are passed on: members are asked for the one that the client asked for, and of each item only what
// is shown differently is written again.
type format interface {
	// mediaType is what members are asked for.
	mediaType() string
	// begin returns what a list says of itself, and where its items begin and end; end is -1 where only what comes after them says it. ok is false for a list
	// that is not canonical, or of another kind: it has to be decoded. It is false, too, of one that breaks off before its items.
	begin(k *kind, list []byte) (about metav1.ListMeta, at, end int, ok bool)
	// next returns the parts of the next item, and how many bytes it takes with what parts it from the one after it: 0 if there is none. They are valid until
	// items changes. ok is false for an item that is not canonical, or breaks off. last says that only the end may follow.
	next(k *kind, items []byte, parts []canonical.Part) (of []canonical.Part, n int, last, ok bool)
	// isEnd reports whether a list may end so after its items.
	isEnd(rest []byte) bool
	// text returns the text that a part is. ok is false where it has to be decoded.
	text(value []byte) (text string, ok bool)
	// owners returns the owners of raw parts, one after the other.
	owners(raw []byte) ([]metav1.OwnerReference, error)
	// These append a part.
	appendName(to []byte, name string) []byte
	appendNodeName(to []byte, name string) []byte
	appendLabel(to []byte, key, value string) []byte
	appendOwners(to []byte, owners []metav1.OwnerReference) ([]byte, error)
	// appendItem appends an item.
	appendItem(to []byte, i *item) []byte
	// encode returns an object as an item.
	encode(o object) ([]byte, error)
	// write writes a list of items.
	write(w io.Writer, k *kind, about *metav1.ListMeta, items [][]byte) error
}

// flushEach is how many bytes of a list are written at once.
const flushEach = 256 << 10

// item are the raw parts of an item.
type item struct{ before, labels, after, spec, rest [][]byte }

// identified are the formats by the identifiers of the encoders that write them.
var identified = map[runtime.Identifier]format{}

func init() {
	for _, f := range []format{protobufFormat{}, jsonFormat{}} {
		info, ok := runtime.SerializerInfoForMediaType(legacyscheme.Codecs.SupportedMediaTypes(), f.mediaType())
		if !ok {
			panic("no encoder of " + f.mediaType())
		}
		identified[encoderOf(info).Identifier()] = f
	}
}

func encoderOf(info runtime.SerializerInfo) runtime.Encoder {
	return legacyscheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion)
}

type formatKey struct{}

// WithFormats makes lists of pods be passed on as members write them, where the client takes that.
func WithFormats(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if ok && info.IsResourceRequest && info.Verb == "list" && info.APIGroup == pods.resource.Group && info.Resource == pods.resource.Resource {
			media, serializer, err := negotiation.NegotiateOutputMediaType(r, legacyscheme.Codecs, anyTransform{})
			if f := identified[encoderIdentifier(serializer, err)]; f != nil && media.Convert == nil {
				r = r.WithContext(context.WithValue(r.Context(), formatKey{}, f))
			}
		}
		next.ServeHTTP(w, r)
	})
}

// encoderIdentifier returns the identifier of what was negotiated, or "".
func encoderIdentifier(info runtime.SerializerInfo, err error) runtime.Identifier {
	if err != nil {
		return ""
	}
	return encoderOf(info).Identifier()
}

// formatOf returns the format in which a list is passed on, nil: it is decoded.
func (r *REST) formatOf(ctx context.Context) format {
	if r.kind.form == nil {
		return nil
	}
	f, _ := ctx.Value(formatKey{}).(format)
	return f
}

// anyTransform has a client's wish for a Table be seen: Tables are made of decoded objects.
type anyTransform struct {
	negotiation.EndpointRestrictions
}

// AllowsMediaTypeTransform implements negotiation.EndpointRestrictions.
func (anyTransform) AllowsMediaTypeTransform(string, string, *schema.GroupVersionKind) bool {
	return true
}

// AllowsServerVersion implements negotiation.EndpointRestrictions.
func (anyTransform) AllowsServerVersion(string) bool { return false }

// AllowsStreamSchema implements negotiation.EndpointRestrictions.
func (anyTransform) AllowsStreamSchema(string) bool { return true }

// encodedList is a list whose items are encoded.
type encodedList struct {
	metav1.TypeMeta
	metav1.ListMeta
	kind   *kind
	format format
	items  [][]byte
}

// DeepCopyObject implements runtime.Object. The items are never changed.
func (l *encodedList) DeepCopyObject() runtime.Object {
	c := *l
	return &c
}

// GetObject implements runtime.CacheableObject: it returns the list, decoded. Of what cannot be decoded nothing is left; there is no such list.
func (l *encodedList) GetObject() runtime.Object {
	list, err := l.decode()
	if err != nil {
		return l.kind.makeList()
	}
	return list
}

// CacheEncode implements runtime.CacheableObject: it writes the list for an encoder, as it is for that of its format.
func (l *encodedList) CacheEncode(id runtime.Identifier, encode func(runtime.Object, io.Writer) error, w io.Writer) error {
	if identified[id] == l.format {
		return l.format.write(w, l.kind, &l.ListMeta, l.items)
	}
	list, err := l.decode()
	if err != nil {
		return err
	}
	return encode(list, w)
}

// decode returns the list with objects.
func (l *encodedList) decode() (runtime.Object, error) {
	var all bytes.Buffer
	if err := l.format.write(&all, l.kind, &l.ListMeta, l.items); err != nil {
		return nil, err
	}
	return runtime.Decode(legacyscheme.Codecs.UniversalDeserializer(), all.Bytes())
}
