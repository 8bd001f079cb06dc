package weight

import (
	"reflect"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

const (
	// opaque is how many bytes one byte of a type takes at most that decodes itself: of a list of empty texts.
	opaque = 32
	// maxNumber is the largest number of a field that a type may have here.
	maxNumber = 1 << 10
	// word is what is allocated for a number or a flag that a pointer leads to, emptyMap and slots for a map, which has room for so many entries at once.
	word, emptyMap, slots = 16, 56, 8
	// asMap is what an item of a list takes when it is made unstructured: a map with a key.
	asMap = 336
)

// shape is what a type is to its decoder: its fields, by their numbers in protobuf.
type shape struct{ fields []field }

// field returns a field; skipped for one that the decoder skips.
func (s *shape) field(number uint64) *field {
	if number < uint64(len(s.fields)) {
		return &s.fields[number]
	}
	return &skipped
}

// skipped is a field that a type does not have.
var skipped field

// field is one field of a type.
type field struct {
	// known is false where the type has no such field.
	known bool
	wire  wireType
	// each is how many bytes one occurrence takes, and each byte of it perByte more.
	each, perByte int64
	// in are the fields of what is in it. nil: bytes, a text or a number.
	in *shape
	// packed is what each byte takes where it is a list of numbers, which may be written as one of bytes.
	packed int64
	// role is what the field is beside its size.
	role role
}

// wireType is how a field is written.
type wireType uint64

// The types that there are. Groups are not used.
const (
	varint  wireType = 0
	fixed64 wireType = 1
	counted wireType = 2
	fixed32 wireType = 5
)

// role is what a field of an envelope or of an event is, or what else becomes of its bytes.
type role int

// The roles.
const (
	noRole role = iota
	apiVersion
	kind
	typeMeta  // has apiVersion and kind
	raw       // is an object of that kind
	enveloped // has an envelope
	quantity  // is a number that is parsed
	zeroOrOne // says which of two others holds
	jsonText  // is JSON that is decoded later
)

// text is a field of bytes or text with a role.
func text(r role) field { return field{known: true, wire: counted, perByte: 1, role: r} }

// message is a field with fields.
func message(in *shape, r role) field { return field{known: true, wire: counted, in: in, role: r} }

var (
	// envelope is k8s.io/apimachinery/pkg/runtime.Unknown.
	envelope = &shape{[]field{1: message(&shape{[]field{1: text(apiVersion), 2: text(kind)}}, typeMeta), 2: text(raw), 3: text(noRole), 4: text(noRole)}}
	// event is k8s.io/apimachinery/pkg/apis/meta/v1.WatchEvent, whose object is a RawExtension.
	event = &shape{[]field{1: text(noRole), 2: message(&shape{[]field{1: text(enveloped)}}, noRole)}}
	// own are the shapes of types of which more is known than their fields say.
	own = map[reflect.Type]*shape{
		reflect.TypeFor[resource.Quantity]():    {[]field{1: text(quantity)}},
		reflect.TypeFor[intstr.IntOrString]():   {[]field{1: {known: true, wire: varint, role: zeroOrOne}, 2: {known: true, wire: varint}, 3: text(noRole)}},
		reflect.TypeFor[metav1.FieldsV1]():      {[]field{1: text(jsonText)}},
		reflect.TypeFor[runtime.RawExtension](): {[]field{1: text(jsonText)}},
	}
	// others are the kinds that are not in client-go's scheme.
	others = map[schema.GroupVersionKind]reflect.Type{
		metricsv1beta1.SchemeGroupVersion.WithKind("PodMetrics"):        reflect.TypeFor[metricsv1beta1.PodMetrics](),
		metricsv1beta1.SchemeGroupVersion.WithKind("PodMetricsList"):    reflect.TypeFor[metricsv1beta1.PodMetricsList](),
		metricsv1beta1.SchemeGroupVersion.WithKind("NodeMetrics"):       reflect.TypeFor[metricsv1beta1.NodeMetrics](),
		metricsv1beta1.SchemeGroupVersion.WithKind("NodeMetricsList"):   reflect.TypeFor[metricsv1beta1.NodeMetricsList](),
		metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"):     reflect.TypeFor[metav1.PartialObjectMetadata](),
		metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList"): reflect.TypeFor[metav1.PartialObjectMetadataList](),
	}
)

// shapes are those of types that have been asked for.
var shapes struct {
	sync.Mutex
	known map[reflect.Type]*shape
}

// shapeOfKind returns the shape of a kind, and its bytes. known is false of one that this program does not decode.
func shapeOfKind(of schema.GroupVersionKind) (s *shape, size int64, known bool) {
	t := others[of]
	if t == nil {
		t = scheme.Scheme.AllKnownTypes()[of]
	}
	if t == nil {
		return nil, 0, false
	}
	shapes.Lock()
	defer shapes.Unlock()
	return shapeOf(t), int64(t.Size()), true
}

// shapeOf returns the shape of a struct, and remembers it. The caller has locked shapes.
func shapeOf(t reflect.Type) *shape {
	if s := own[t]; s != nil {
		return s
	}
	if s, ok := shapes.known[t]; ok {
		return s
	}
	if shapes.known == nil {
		shapes.known = map[reflect.Type]*shape{}
	}
	s := &shape{}
	shapes.known[t] = s // before its fields, for types may be in themselves
	for i := range t.NumField() {
		number := FieldNumber(t.Field(i))
		if number == 0 {
			continue
		}
		s.fields = append(s.fields, make([]field, max(0, number+1-len(s.fields)))...)
		s.fields[number] = fieldOf(t.Field(i).Type)
	}
	return s
}

// FieldNumber returns the number that a field of a struct has in protobuf, by its tag, as in bytes,2,rep,name=items; 0 if it has none.
func FieldNumber(f reflect.StructField) int {
	parts := strings.Split(f.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return 0
	}
	number, err := strconv.Atoi(parts[1])
	if err != nil || number < 0 || number > maxNumber {
		return 0
	}
	return number
}

// hasNumbers reports whether a struct has fields with numbers. One that has none decodes itself.
func hasNumbers(t reflect.Type) bool {
	for i := range t.NumField() {
		if FieldNumber(t.Field(i)) > 0 {
			return true
		}
	}
	return false
}

// fieldOf returns what occurrences of a field of a type take.
func fieldOf(t reflect.Type) field {
	switch t.Kind() {
	case reflect.Pointer:
		f := fieldOf(t.Elem())
		f.each += max(word, int64(t.Elem().Size()))
		return f
	case reflect.Struct:
		if own[t] == nil && !hasNumbers(t) {
			return field{known: true, wire: counted, perByte: opaque}
		}
		return message(shapeOf(t), noRole)
	case reflect.Slice:
		return listOf(t)
	case reflect.Map:
		in := &shape{[]field{1: fieldOf(t.Key()), 2: fieldOf(t.Elem())}}
		return field{known: true, wire: counted, each: emptyMap + (slots+2)*int64(t.Key().Size()+t.Elem().Size()), in: in}
	case reflect.String:
		return text(noRole)
	case reflect.Float64:
		return field{known: true, wire: fixed64}
	case reflect.Float32:
		return field{known: true, wire: fixed32}
	default:
		return field{known: true, wire: varint}
	}
}

// listOf returns what occurrences of a list take.
func listOf(t reflect.Type) field {
	switch {
	case t.Elem().Kind() == reflect.Uint8:
		return text(noRole)
	case t.Name() != "": // it decodes itself
		return field{known: true, wire: counted, perByte: opaque}
	}
	f := fieldOf(t.Elem())
	f.each += int64(t.Elem().Size())
	if f.in != nil {
		f.each += asMap
	}
	if t.Elem().Kind() == reflect.Pointer {
		f.each += word
	}
	if f.wire != counted {
		f.packed = f.each
	}
	return f
}
