package validation

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
)

// unbounded are fields of which any value means something, with what.
var unbounded = map[string]string{
	"spec.priority":                       "an order",
	"spec.spreadConstraints[0].minGroups": "more than there are is a constraint that is not met, which its policy's status says",
	"spec.spreadConstraints[0].maxGroups": "as many as there are",
	"spec.guardrails.maxUnplaced":         "as many as there are",
	"spec.template.metadata":              "of a template, only labels and annotations count, as of that of a pod",
	"spec.template.spec.windows":          "must be left out as a whole",
}

// isUnbounded reports whether any value of a field, or of what it is part of, means something.
func isUnbounded(path string) bool {
	for known := range unbounded {
		if strings.HasPrefix(path, known) || strings.HasPrefix(strings.Replace(path, "spec.template.spec.", "spec.", 1), known) {
			return true
		}
	}
	return false
}

// plausible makes of a filled spec one whose parts are not wrong already, where that would hide others.
func plausible(spec any) {
	probes := func(s *v1beta1.FailoverDrillSpec) {
		byHost := s.Probes[0]
		byHost.Name, byHost.Service, byHost.Type, s.Probes[0].Host, s.Probes[0].Type = "b", nil, v1beta1.ProbeHTTP, "", v1beta1.ProbeHTTP
		s.Probes = append(s.Probes, byHost)
	}
	switch s := spec.(type) {
	case *v1beta1.PlacementPolicySpec:
		s.ResourceSelectors[0].APIVersion, s.ResourceSelectors[0].Kind = "example.org/v1", "Widget"
		s.Tolerations[0].Operator, s.Tolerations[0].Effect = "Equal", "NoSchedule"
		s.DNS.HealthCheck.Type = v1beta1.DNSHealthCheckHTTPS
	case *v1beta1.FailoverDrillSpec:
		probes(s)
	case *v1beta1.FailoverDrillScheduleSpec:
		probes(&s.Template.Spec)
	}
}

// TestEachFieldIsBounded sets one field after another of each spec to what nobody means: a text of a megabyte, the least and the greatest number.
// Validation must say so at that field, or at one above it. What it finds wrong with the rest of the object does not count.
func TestEachFieldIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		object   any
		validate func(any) field.ErrorList
	}{
		"Cluster":               {&v1beta1.Cluster{}, func(o any) field.ErrorList { return ValidateCluster(o.(*v1beta1.Cluster)) }},
		"PlacementPolicy":       {&v1beta1.PlacementPolicy{}, func(o any) field.ErrorList { return ValidatePlacementPolicy(o.(*v1beta1.PlacementPolicy)) }},
		"DNSNameGrant":          {&v1beta1.DNSNameGrant{}, func(o any) field.ErrorList { return ValidateDNSNameGrant(o.(*v1beta1.DNSNameGrant)) }},
		"FailoverDrill":         {&v1beta1.FailoverDrill{}, func(o any) field.ErrorList { return ValidateFailoverDrill(o.(*v1beta1.FailoverDrill)) }},
		"FailoverDrillSchedule": {&v1beta1.FailoverDrillSchedule{}, func(o any) field.ErrorList { return ValidateFailoverDrillSchedule(o.(*v1beta1.FailoverDrillSchedule)) }},
	} {
		t.Run(name, func(t *testing.T) {
			spec := reflect.ValueOf(c.object).Elem().FieldByName("Spec")
			fill(spec)
			plausible(spec.Addr().Interface())
			known := map[string]bool{}
			for _, e := range c.validate(c.object) {
				known[faultKey(e)] = true
			}
			fields := 0
			eachScalar(spec, "spec", func(path string, v reflect.Value, commit func()) {
				fields++
				before := reflect.ValueOf(v.Interface())
				for _, hostile := range hostileValues(v.Kind()) {
					v.Set(reflect.ValueOf(hostile).Convert(v.Type()))
					commit()
					if errs := c.validate(c.object); !saysNew(errs, known, path) && !isUnbounded(path) {
						t.Errorf("%s: %.20v is allowed", path, hostile)
					}
				}
				v.Set(before)
				commit()
			}, func() {})
			if fields < 2 {
				t.Errorf("%d fields were found", fields)
			}
		})
	}
}

func faultKey(e *field.Error) string { return fmt.Sprint(e.Type, e.Field, e.Detail) }

// saysNew reports whether an error is about a field or, if it is not known, about what the field is part of.
func saysNew(errs field.ErrorList, known map[string]bool, path string) bool {
	for _, e := range errs {
		if e.Field == path || !known[faultKey(e)] && (strings.HasPrefix(path, e.Field) || strings.HasPrefix(e.Field, path)) {
			return true
		}
	}
	return false
}

func hostileValues(kind reflect.Kind) []any {
	switch kind {
	case reflect.String:
		return []any{strings.Repeat("x", 1<<20)}
	case reflect.Int32:
		return []any{int32(math.MinInt32), int32(math.MaxInt32)}
	case reflect.Int64:
		return []any{int64(math.MinInt64), int64(math.MaxInt64)}
	}
	return nil
}

// fill gives each field a value: pointers something to point at, lists and maps one element.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[metav1.Time]() {
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		one := reflect.New(v.Type().Elem()).Elem()
		fill(one)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("a").Convert(v.Type().Key()), one)
	case reflect.String:
		v.SetString("a")
	case reflect.Int32, reflect.Int64:
		v.SetInt(1)
	}
}

// eachScalar calls do with each text and number, and its path in JSON. What do changes is in the object once it has called commit.
func eachScalar(v reflect.Value, path string, do func(path string, v reflect.Value, commit func()), commit func()) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			eachScalar(v.Elem(), path, do, commit)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[metav1.Time]() {
			return
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case !f.IsExported() || name == "-":
			case name == "":
				eachScalar(v.Field(i), path, do, commit)
			default:
				eachScalar(v.Field(i), path+"."+name, do, commit)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachScalar(v.Index(i), fmt.Sprintf("%s[%d]", path, i), do, commit)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			one := reflect.New(v.Type().Elem()).Elem()
			one.Set(v.MapIndex(key))
			eachScalar(one, fmt.Sprintf("%s[%s]", path, key), do, func() {
				v.SetMapIndex(key, one)
				commit()
			})
		}
	case reflect.String, reflect.Int32, reflect.Int64:
		do(path, v, commit)
	}
}
