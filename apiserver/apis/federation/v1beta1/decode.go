package v1beta1

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	strict "sigs.k8s.io/json"
)

// decodeStrict decodes one JSON value. It rejects unknown and duplicate fields, with their path.
func decodeStrict(value string, into any, path *field.Path) *field.Error {
	faults, err := strict.UnmarshalStrict([]byte(value), into)
	var mistyped *json.UnmarshalTypeError
	switch {
	case errors.As(err, &mistyped):
		at := locateMismatch(json.NewDecoder(strings.NewReader(value)), reflect.TypeOf(into), path, mistyped.Offset)
		if at == nil {
			at = path
		}
		return field.Invalid(at, value, "must be "+inWords(mistyped.Type)+", not a JSON "+mistyped.Value)
	case err != nil:
		return field.Invalid(path, value, "must be JSON of the documented form: "+strings.TrimPrefix(err.Error(), "json: "))
	case len(faults) > 0:
		return field.Invalid(path, value, "must be JSON of the documented form: "+errors.Join(faults...).Error())
	default:
		return nil
	}
}

// inWords returns the JSON name of a type.
func inWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice:
		return "a list [...]"
	case reflect.Struct, reflect.Map:
		return "an object {...}"
	case reflect.String:
		return `a "text"`
	case reflect.Bool:
		return "true or false"
	default:
		return "a whole number"
	}
}
