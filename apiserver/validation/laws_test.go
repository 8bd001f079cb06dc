package validation

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
)

// checked is how the objects of a kind are validated.
type checked struct {
	empty  func() runtime.Object
	create func(runtime.Object) field.ErrorList
	update func(object, old runtime.Object) field.ErrorList
	// fixed: what the spec says is never changed.
	fixed bool
}

// checksOf returns the row of a kind; validators are given as they are.
func checksOf[T any, P interface {
	*T
	runtime.Object
}](create func(P) field.ErrorList, update func(object, old P) field.ErrorList, fixed bool) checked {
	return checked{
		empty:  func() runtime.Object { return P(new(T)) },
		create: func(o runtime.Object) field.ErrorList { return create(o.(P)) },
		update: func(o, old runtime.Object) field.ErrorList { return update(o.(P), old.(P)) },
		fixed:  fixed,
	}
}

var checkedKinds = map[string]checked{
	"Cluster":               checksOf(ValidateCluster, ValidateClusterUpdate, false),
	"PlacementPolicy":       checksOf(ValidatePlacementPolicy, ValidatePlacementPolicyUpdate, false),
	"DNSNameGrant":          checksOf(ValidateDNSNameGrant, ValidateDNSNameGrantUpdate, false),
	"FailoverDrill":         checksOf(ValidateFailoverDrill, ValidateFailoverDrillUpdate, true),
	"FailoverDrillSchedule": checksOf(ValidateFailoverDrillSchedule, ValidateFailoverDrillScheduleUpdate, false),
	"FailoverReadiness":     checksOf(ValidateFailoverReadiness, ValidateFailoverReadinessUpdate, true),
	"FailoverReview":        checksOf(ValidateFailoverReview, func(r, _ *v1beta1.FailoverReview) field.ErrorList { return ValidateFailoverReview(r) }, false),
	"PlacementReview":       checksOf(ValidatePlacementReview, func(r, _ *v1beta1.PlacementReview) field.ErrorList { return ValidatePlacementReview(r) }, false),
}

var (
	someTexts = strings.Fields("a east-a East east/a * 10.0.0.0/8 10.0.0.1/8 example.com example.com:6443 " +
		"/spec/replicas /metadata/labels/a add move test apps/v1 v1 Deployment Job " +
		"Zone Cluster Required Exists Equal NoExecute HTTP TCP DNS Shift Isolate Zones MON-09:00-12:00 2026-12-24 UTC @daily Pull Weighted")
	someNumbers = []int64{-1, 0, 0, 1, 1, 2, 30, 60, 1001, 1 << 30}
)

// scramble sets everything in a value to something that is sometimes right: texts and numbers that are, somewhere.
func scramble(r *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if r.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			scramble(r, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type() != reflect.TypeFor[metav1.Time]() {
				scramble(r, v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(`{"a":1}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 3))
		for i := range v.Len() {
			scramble(r, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range r.IntN(3) {
			one := reflect.New(v.Type().Elem()).Elem()
			scramble(r, one)
			v.SetMapIndex(reflect.ValueOf([]string{"a", "*", "East"}[r.IntN(3)]).Convert(v.Type().Key()), one)
		}
	case reflect.String:
		if r.IntN(4) > 0 {
			v.SetString(someTexts[r.IntN(len(someTexts))])
		}
	case reflect.Int32, reflect.Int64, reflect.Int:
		v.SetInt(someNumbers[r.IntN(len(someNumbers))])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	}
}

// scrambled returns an object whose spec is scrambled, and whose name is all right.
func scrambled(r *rand.Rand, kind checked) runtime.Object {
	object := kind.empty()
	scramble(r, reflect.ValueOf(object).Elem().FieldByName("Spec"))
	meta := object.(metav1.Object)
	meta.SetName("a")
	meta.SetResourceVersion("1")
	if _, namespaced := object.(*v1beta1.PlacementPolicy); namespaced {
		meta.SetNamespace("shop")
	}
	return object
}

// sortedErrors returns errors as texts, whatever their order.
func sortedErrors(errs field.ErrorList) []string {
	texts := make([]string, 0, len(errs))
	for _, e := range errs {
		texts = append(texts, e.Error())
	}
	slices.Sort(texts)
	return texts
}

// Whatever an object says: to check it changes nothing in it and says the same each time; a change is checked as what is new, unless
// it may not be made at all; and it is always an error that the name changes.
func TestUpdatesAreCheckedAsCreatesAre(t *testing.T) {
	for name, kind := range checkedKinds {
		r := rand.New(rand.NewPCG(5, 6))
		for range 300 {
			object, old := scrambled(r, kind), scrambled(r, kind)
			before := object.DeepCopyObject()
			created := sortedErrors(kind.create(object))
			if again := sortedErrors(kind.create(object)); !slices.Equal(again, created) {
				t.Fatalf("%s: first %q, then %q", name, created, again)
			}
			updated := sortedErrors(kind.update(object, old))
			switch {
			case !kind.fixed && !slices.Equal(updated, created):
				t.Fatalf("%s: %q of the new one, %q of the change", name, created, updated)
			case kind.fixed && (len(updated) > 0) == reflect.DeepEqual(object, old):
				t.Fatalf("%s: %q of a change of %+v to %+v", name, updated, old, object)
			}
			if !reflect.DeepEqual(object, before) {
				t.Fatalf("%s: the check made %+v of %+v", name, object, before)
			}
			object.(metav1.Object).SetName("b")
			if renamed := kind.update(object, old); !strings.HasSuffix(name, "Review") && !strings.Contains(fields(renamed), "metadata.name") {
				t.Fatalf("%s: its name may change: %v", name, renamed)
			}
		}
	}
}

// part is one part of the path of a field: a name, or what is in brackets.
var part = regexp.MustCompile(`^\.?([A-Za-z]+)|^\[([^\]]*)\]`)

// found returns whether a value has what a path leads to; nothing is behind a pointer that points at nothing.
func found(v reflect.Value, path string) bool {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return path == ""
		}
		v = v.Elem()
	}
	if path == "" {
		return true
	}
	at := part.FindStringSubmatch(path)
	if at == nil {
		return false
	}
	rest := path[len(at[0]):]
	switch v.Kind() {
	case reflect.Map:
		value := v.MapIndex(reflect.ValueOf(at[2]).Convert(v.Type().Key()))
		return value.IsValid() && found(value, rest)
	case reflect.Slice:
		i, err := strconv.Atoi(at[2])
		return err == nil && i < v.Len() && found(v.Index(i), rest)
	case reflect.Struct:
		for i := range v.NumField() {
			tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			if tag == at[1] && found(v.Field(i), rest) || tag == "" && v.Type().Field(i).Anonymous && found(v.Field(i), path) {
				return true
			}
		}
	}
	return false
}

// Each error leads to a field that is there, by the names that users write, and shows a value that can be shown.
func TestErrorsLeadToWhatIsWrong(t *testing.T) {
	for name, kind := range checkedKinds {
		r := rand.New(rand.NewPCG(7, 8))
		where := map[string]bool{}
		for range 300 {
			object := scrambled(r, kind)
			for _, e := range kind.create(object) {
				if !found(reflect.ValueOf(object), e.Field) {
					spec, _ := json.Marshal(object)
					t.Errorf("%s: %v: no such field in %s", name, e, spec)
				}
				where[regexp.MustCompile(`\[[^\]]*\]`).ReplaceAllString(e.Field, "")] = true
			}
		}
		if len(where) < 2 {
			t.Errorf("%s: faults are found at %v only", name, where)
		}
	}
}

// Of a list of names each one is checked, and each one after the first of its name is refused as that.
func TestEachNameIsThereOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 500 {
		names := make([]string, r.IntN(8))
		for i := range names {
			names[i] = []string{"a", "b", "C", "D"}[r.IntN(4)]
		}
		var want []string
		for i, name := range names {
			at := fmt.Sprintf("spec.clusters[%d]", i)
			switch {
			case slices.Index(names, name) < i:
				want = append(want, "FieldValueDuplicate "+at)
			case name == "C" || name == "D":
				want = append(want, "FieldValueInvalid "+at)
			}
		}
		var got []string
		for _, e := range ValidateFailoverReview(&v1beta1.FailoverReview{Spec: v1beta1.FailoverReviewSpec{Clusters: names, Regions: []string{"east"}}}) {
			got = append(got, string(e.Type)+" "+e.Field)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q: %q, want %q", names, got, want)
		}
	}
}

// Whatever annotations there were and are: those that are new or changed are checked, each for itself, by their names' order; others are not.
func TestOnlyChangedAnnotationsAreChecked(t *testing.T) {
	values := map[string][]string{
		v1beta1.DeploymentPreferencesAnnotation: {`{}`, `{`, `{"clusters":{"East":{}}}`},
		v1beta1.ClusterSelectorAnnotation:       {`[]`, `[`, `[{"key":"a","operator":"near"}]`},
		v1beta1.DNSAnnotation:                   {`{}`, `{"ttlSeconds":0}`, `{"hosts":[""]}`},
		v1beta1.FallbackAnnotation:              {"true", "yes", ""},
		v1beta1.FallbackBelowAnnotation:         {"50%", "0%", ""},
		v1beta1.ClusterSetIPAnnotation:          {"auto", "10.0.0", "10.0.0.1,10.0.0.2"},
		"example.com/of-somebody-else":          {"{", "[", ""},
	}
	for key, of := range values {
		for i, value := range of { // the first is good
			alone := ValidateAnnotations(map[string]string{key: value})
			if good := i == 0 || strings.HasPrefix(key, "example.com/"); good != (len(alone) == 0) {
				t.Errorf("%s %q: %v, want that it is good: %t", key, value, alone, good)
			}
		}
	}
	r := rand.New(rand.NewPCG(11, 12))
	some := func() map[string]string {
		all := map[string]string{}
		for key, of := range values {
			if i := r.IntN(len(of) + 1); i < len(of) {
				all[key] = of[i]
			}
		}
		return all
	}
	for range 500 {
		now, old := some(), some()
		var want []string
		for key, value := range now {
			if was, had := old[key]; !had || was != value {
				want = append(want, sortedErrors(ValidateAnnotations(map[string]string{key: value}))...)
			}
		}
		slices.Sort(want)
		errs := ValidateChangedAnnotations(now, old)
		if got := sortedErrors(errs); !slices.Equal(got, want) {
			t.Fatalf("%v, then %v: %q, want %q", old, now, got, want)
		}
		if !slices.IsSortedFunc(errs, func(a, b *field.Error) int { return strings.Compare(keyOf(a), keyOf(b)) }) {
			t.Fatalf("not by name: %v", errs)
		}
	}
}

// keyOf returns the annotation that an error is about.
func keyOf(e *field.Error) string {
	key, _, _ := strings.Cut(strings.TrimPrefix(e.Field, "metadata.annotations["), "]")
	return key
}

// Of the same key two taints may have different effects, and no more: then each is there once, whatever its value.
func TestTaintsAreThereOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for range 500 {
		object, distinct := cluster("east", "::/0", "a"), map[string]bool{}
		for range r.IntN(6) {
			taint := corev1.Taint{Key: []string{"a", "b"}[r.IntN(2)], Value: []string{"", "x"}[r.IntN(2)], Effect: []corev1.TaintEffect{"NoSchedule",
				"NoExecute"}[r.IntN(2)]}
			object.Spec.Taints = append(object.Spec.Taints, taint)
			distinct[taint.Key+string(taint.Effect)] = true
		}
		if errs := ValidateCluster(object); len(errs) != len(object.Spec.Taints)-len(distinct) {
			t.Fatalf("%v: %v, want %d faults", object.Spec.Taints, errs, len(object.Spec.Taints)-len(distinct))
		}
	}
}
