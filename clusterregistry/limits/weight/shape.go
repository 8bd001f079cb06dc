package weight

import (
	"reflect"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

const (
	// opaque is how many bytes one byte of what decodes itself takes at most: of a list of empty texts, in a type that is such a list.
	opaque = 32
	// unknown is the same of what could be anything: as an item of a list, two bytes are the largest of all types.
	unknown = 1024
	// maxNumber is the largest number of a field that a type may have here.
	maxNumber = 1 << 10
	// word is what is allocated for a number or a flag that a pointer leads to, and entry for an entry of a map, beside key and value.
	word, entry = 16, 64
)

// shape is what a type is to its decoder: its fields, by their numbers in protobuf. nil is that of a type without fields.
type shape struct{ fields []field }

// field returns a field, nil for one that the decoder skips.
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
	// each is how many bytes one occurrence takes, and each byte of it perByte more.
	each, perByte int64
	// in are the fields of what is in it. nil: bytes, a text or a number.
	in *shape
	// packed is what each byte takes where it is a list of numbers, which may be written as one of bytes.
	packed int64
	// role is what the field is to who reads the envelope.
	role role
}

// role is what a field of an envelope or of an event is.
type role int

// The roles.
const (
	noRole role = iota
	apiVersion
	kind
	typeMeta // has apiVersion and kind
	raw      // is an object of that kind
	enveloped
)

var (
	// envelope is k8s.io/apimachinery/pkg/runtime.Unknown.
	envelope = &shape{[]field{1: {role: typeMeta, in: &shape{[]field{1: {role: apiVersion, perByte: 1}, 2: {role: kind, perByte: 1}}}}, 2: {role: raw, perByte: 1}, 3: {perByte: 1}, 4: {perByte: 1}}}
	// event is k8s.io/apimachinery/pkg/apis/meta/v1.WatchEvent, whose object is a RawExtension.
	event = &shape{[]field{1: {perByte: 1}, 2: {in: &shape{[]field{1: {role: enveloped, perByte: 1}}}}}}
)

// shapes are those of types that have been asked for.
var shapes struct {
	sync.Mutex
	known map[reflect.Type]*shape
}

// shapeOfKind returns the shape of a kind, and its bytes. known is false of one that this program does not decode.
func shapeOfKind(version, kind string) (s *shape, size int64, known bool) {
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		return nil, 0, false
	}
	t := scheme.Scheme.AllKnownTypes()[gv.WithKind(kind)]
	if gv == metricsv1beta1.SchemeGroupVersion {
		t = metrics[kind]
	}
	if t == nil {
		return nil, 0, false
	}
	shapes.Lock()
	defer shapes.Unlock()
	return shapeOf(t), int64(t.Size()), true
}

// metrics are the kinds that are not in client-go's scheme.
var metrics = map[string]reflect.Type{
	"PodMetrics": reflect.TypeFor[metricsv1beta1.PodMetrics](), "PodMetricsList": reflect.TypeFor[metricsv1beta1.PodMetricsList](),
	"NodeMetrics": reflect.TypeFor[metricsv1beta1.NodeMetrics](), "NodeMetricsList": reflect.TypeFor[metricsv1beta1.NodeMetricsList](),
}

// shapeOf returns the shape of a struct, and remembers it. The caller has locked shapes.
func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.known[t]; ok {
		return s
	}
	if shapes.known == nil {
		shapes.known = map[reflect.Type]*shape{}
	}
	s := &shape{}
	shapes.known[t] = s // before its fields, for types may be in themselves
	for i := range t.NumField() {
		parts := strings.Split(t.Field(i).Tag.Get("protobuf"), ",") // as in bytes,2,rep,name=items
		if len(parts) < 2 {
			continue
		}
		number, err := strconv.Atoi(parts[1])
		if err != nil || number < 1 || number > maxNumber {
			continue
		}
		s.fields = append(s.fields, make([]field, max(0, number+1-len(s.fields)))...)
		s.fields[number] = fieldOf(t.Field(i).Type)
	}
	return s
}

// hasNumbers reports whether a struct has fields with numbers. One that has none decodes itself.
func hasNumbers(t reflect.Type) bool {
	for i := range t.NumField() {
		if strings.Contains(t.Field(i).Tag.Get("protobuf"), ",") {
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
		s := shapeOf(t)
		if !hasNumbers(t) {
			return field{perByte: opaque}
		}
		return field{in: s}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return field{perByte: 1}
		}
		if t.Name() != "" { // it decodes itself
			return field{perByte: opaque}
		}
		f := fieldOf(t.Elem())
		f.each += int64(t.Elem().Size())
		if t.Elem().Kind() == reflect.Pointer {
			f.each += word
		}
		if f.in == nil {
			f.packed = f.each
		}
		return f
	case reflect.Map:
		key, value := fieldOf(t.Key()), fieldOf(t.Elem())
		return field{each: entry + 2*int64(t.Key().Size()+t.Elem().Size()), in: &shape{[]field{1: key, 2: value}}}
	case reflect.String:
		return field{perByte: 1}
	default:
		return field{}
	}
}
