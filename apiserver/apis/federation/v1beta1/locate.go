package v1beta1

import (
	"encoding/json"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// locateMismatch returns the path of the value that does not fit t, by the offset at which a decoder found it. It reads one
// JSON value, which is at path; nil means that the misfit is not in it. The decoder's own path lacks the keys of maps.
func locateMismatch(d *json.Decoder, t reflect.Type, path *field.Path, offset int64) *field.Path {
	token, err := d.Token()
	if err != nil {
		return path
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	open, composite := token.(json.Delim)
	if !composite {
		return ifReached(d, path, offset)
	}
	if t != nil && !acceptsKind(t.Kind(), open) {
		return path
	}
	for i := 0; d.More(); i++ {
		at, of := path.Index(i), reflect.Type(nil)
		if open == '{' {
			key, _ := d.Token()
			name, _ := key.(string)
			at, of = childPath(path, t, name)
		} else if t != nil {
			of = t.Elem()
		}
		if found := locateMismatch(d, of, at, offset); found != nil {
			return found
		}
	}
	if _, err := d.Token(); err != nil { // the closing bracket
		return path
	}
	return ifReached(d, path, offset)
}

func ifReached(d *json.Decoder, path *field.Path, offset int64) *field.Path {
	if d.InputOffset() >= offset {
		return path
	}
	return nil
}

func acceptsKind(kind reflect.Kind, open json.Delim) bool {
	if open == '[' {
		return kind == reflect.Slice
	}
	return kind == reflect.Struct || kind == reflect.Map
}

// childPath returns path and type of the value at a key of an object of type t. The type of an unknown field is nil:
// anything fits there.
func childPath(path *field.Path, t reflect.Type, key string) (*field.Path, reflect.Type) {
	if t == nil {
		return path.Child(key), nil
	}
	if t.Kind() == reflect.Map {
		return path.Key(key), t.Elem()
	}
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name == key {
			return path.Child(key), t.Field(i).Type
		}
	}
	return path.Child(key), nil
}
