package canonical

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"federation/clusterregistry/limits/weight"
)

// Form is how objects of a type are written.
type Form struct {
	inJSON   []field // in the order in which they are written
	byNumber []field // in protobuf
}

// field is one field of a type.
type field struct {
	// path is how it is called where it is returned: see Part. returned is false where it is not.
	path     string
	returned bool
	key      string // in JSON, with its colon
	is       value
}

// value is what a field, an item of a list or an entry of a map may be.
type value struct {
	kind kind
	// form is of an object; nil of others.
	form *Form
	// of is what items of a list or entries of a map are.
	of *value
	// opened: the fields of the object, or the entries of the map, are returned one by one.
	opened bool
	// nullable: JSON has null where there is none.
	nullable bool
}

// kind is what decoders make of a value.
type kind int

const (
	unknown kind = iota // what this package does not know is never canonical
	text
	truth
	zero // a number that is not used
	int32s
	int64s
	bytes64 // bytes, in JSON as base64
	object
	list
	dictionary
	moment
	quantity
	numberOrText
	anyJSON
)

// own are the types that write themselves.
var own = map[reflect.Type]kind{
	reflect.TypeFor[metav1.Time](): moment, reflect.TypeFor[resource.Quantity](): quantity, reflect.TypeFor[intstr.IntOrString](): numberOrText, reflect.TypeFor[metav1.FieldsV1](): anyJSON,
}

// Of returns the form of a type, and what is returned of its objects by itself: fields that are named, as in metadata.name, and those of an object, or the entries
// of a map, whose name ends with a dot, as in metadata. with it. The other fields of these objects are returned together, as far as they follow each other.
func Of[T any](named ...string) *Form { return openedForm(reflect.TypeFor[T](), "", named) }

// openedForm returns the form of a struct whose fields are returned. at is where it is: it ends with a dot, or is "".
func openedForm(t reflect.Type, at string, named []string) *Form {
	f := &Form{}
	f.add(t, func(name string, is reflect.Type) field {
		path := at + name
		known := field{path: at, returned: true, is: valueOf(is)}
		known.is.opened = slices.Contains(named, path+".")
		if known.is.opened || slices.Contains(named, path) {
			known.path = path
		}
		if known.is.opened && known.is.kind == object {
			known.is.form = openedForm(is, path+".", named)
		}
		return known
	})
	return f
}

// forms are those of types of which nothing is returned.
var forms sync.Map // of reflect.Type

func formOf(t reflect.Type) *Form {
	if known, ok := forms.Load(t); ok {
		return known.(*Form)
	}
	f := &Form{}
	f.add(t, func(_ string, is reflect.Type) field { return field{is: valueOf(is)} })
	forms.Store(t, f)
	return f
}

// add adds the fields of a struct. In JSON those of an embedded one are its own; in protobuf it is a field.
func (f *Form) add(t reflect.Type, of func(name string, is reflect.Type) field) {
	for i := range t.NumField() {
		structField := t.Field(i)
		name, options, _ := strings.Cut(structField.Tag.Get("json"), ",")
		number := weight.FieldNumber(structField)
		switch {
		case number == 0: // kind and apiVersion, which items of lists do not have
		case name == "" && strings.Contains(options, "inline"):
			embedded := formOf(structField.Type)
			f.inJSON = append(f.inJSON, embedded.inJSON...)
			f.setNumber(number, field{is: value{kind: object, form: embedded}})
		case name != "" && name != "-":
			known := of(name, structField.Type)
			known.key = `"` + name + `":`
			known.is.nullable = isNil(structField.Type) && !strings.Contains(options, "omitempty")
			f.inJSON = append(f.inJSON, known)
			f.setNumber(number, known)
		}
	}
}

func (f *Form) setNumber(number int, known field) {
	f.byNumber = append(f.byNumber, make([]field, max(0, number+1-len(f.byNumber)))...)
	f.byNumber[number] = known
}

// valueOf returns what a field of a type may be.
func valueOf(t reflect.Type) value {
	if k, ok := own[t]; ok {
		return value{kind: k}
	}
	switch of := t.Kind(); {
	case of == reflect.Pointer:
		return valueOf(t.Elem())
	case writesItself(t):
	case of == reflect.String:
		return value{kind: text}
	case of == reflect.Bool:
		return value{kind: truth}
	case of == reflect.Int32:
		return value{kind: int32s}
	case of == reflect.Int64:
		return value{kind: int64s}
	case of == reflect.Struct:
		return value{kind: object, form: formOf(t)}
	case of == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return value{kind: bytes64}
	case of == reflect.Slice:
		item := valueOf(t.Elem())
		return value{kind: list, of: &item}
	case of == reflect.Map && t.Key().Kind() == reflect.String:
		entry := valueOf(t.Elem())
		return value{kind: dictionary, of: &entry}
	}
	return value{}
}

// isNil reports whether a value of a type may be nil.
func isNil(t reflect.Type) bool {
	return t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map
}

// writesItself reports whether a type has a JSON of its own.
func writesItself(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[json.Marshaler]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]())
}

// Part is a field of an object, an entry of a map that is one, or several fields that are returned together.
type Part struct {
	// Path is how it is called; that of several fields ends with a dot, or is "".
	Path string
	Raw  []byte // all of it, without a comma after it
	// Key is that of an entry. Value is what a field or an entry is: in JSON as it is written, with its quotation marks.
	Key, Value []byte
}

// notes are parts.
type notes struct {
	parts []Part
	// cut: what comes next does not follow what came last.
	cut bool
}

// note adds a part, whose bytes follow those of the part before, if that has the same fields, by so many.
func (n *notes) note(of *field, raw, key, value []byte, after int) {
	if !of.returned {
		return
	}
	if last := len(n.parts) - 1; last >= 0 && !n.cut && key == nil && n.parts[last].Path == of.path && (of.path == "" || of.path[len(of.path)-1] == '.') {
		together := &n.parts[last].Raw
		*together = (*together)[:len(*together)+after+len(raw)]
		return
	}
	n.parts, n.cut = append(n.parts, Part{of.path, raw, key, value}), false
}
