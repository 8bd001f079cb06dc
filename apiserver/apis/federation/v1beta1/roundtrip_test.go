package v1beta1

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// fillAny gives each field of a value something, or nothing: what a pointer points at, up to two items of a list, up to two keys of a map.
func fillAny(r *rand.Rand, v reflect.Value) {
	switch v.Type() {
	case reflect.TypeFor[metav1.Time]():
		v.Set(reflect.ValueOf(metav1.Unix(r.Int64N(1<<32), 0)))
		return
	case reflect.TypeFor[metav1.MicroTime]():
		v.Set(reflect.ValueOf(metav1.NewMicroTime(time.Unix(r.Int64N(1<<32), r.Int64N(1e6)*1000))))
		return
	case reflect.TypeFor[resource.Quantity]():
		v.Set(reflect.ValueOf(*resource.NewMilliQuantity(1+r.Int64N(1<<40), resource.DecimalSI)))
		return
	case reflect.TypeFor[metav1.FieldsV1]():
		v.Set(reflect.ValueOf(*metav1.NewFieldsV1(fmt.Sprintf(`{"f:%d":{}}`, r.IntN(9)))))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if r.IntN(4) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fillAny(r, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type().Field(i).Type != reflect.TypeFor[metav1.TypeMeta]() {
				fillAny(r, v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(fmt.Sprintf(`{"a":[%d]}`, r.IntN(9))))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 2))
		for i := range v.Len() {
			fillAny(r, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range r.IntN(3) {
			one := reflect.New(v.Type().Elem()).Elem()
			fillAny(r, one)
			v.SetMapIndex(reflect.ValueOf(fmt.Sprint("k-", r.IntN(9))).Convert(v.Type().Key()), one)
		}
	case reflect.String:
		v.SetString([]string{"", "a", "east/a", "*", "ü \"<&>\" \n"}[r.IntN(5)])
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(r.Int32()) - 1<<30)
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	}
}

// ownKinds returns the kinds of our group, by name, from the scheme.
func ownKinds(t *testing.T) map[string]reflect.Type {
	t.Helper()
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]reflect.Type{}
	for kind, of := range s.KnownTypes(SchemeGroupVersion) {
		if strings.HasSuffix(of.PkgPath(), "/v1beta1") {
			kinds[kind] = of
		}
	}
	return kinds
}

// Whatever an object of a kind holds: written as JSON, as YAML or without a type, it is read as what it was, and nothing in it has no name.
func TestKindsAreReadAsTheyAreWritten(t *testing.T) {
	for kind, of := range ownKinds(t) {
		r := rand.New(rand.NewPCG(1, uint64(len(kind))))
		for range 15 {
			object := reflect.New(of)
			fillAny(r, object.Elem())
			text, err := json.Marshal(object.Interface())
			if err != nil {
				t.Fatal(err)
			}
			for format, read := range map[string]func(into any) error{
				"JSON": func(into any) error { return json.Unmarshal(text, into) },
				"YAML": func(into any) error {
					lines, err := yaml.JSONToYAML(text)
					if err != nil {
						return err
					}
					return yaml.UnmarshalStrict(lines, into)
				},
				"without a type": func(into any) error {
					fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object.Interface())
					if err != nil {
						return err
					}
					return runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, into, true)
				},
			} {
				back := reflect.New(of)
				if err := read(back.Interface()); err != nil || !equality.Semantic.DeepEqual(back.Interface(), object.Interface()) {
					t.Fatalf("%s, %s: %v\n%s\nis read as %+v", kind, format, err, text, back.Interface())
				}
				if again, _ := json.Marshal(back.Interface()); string(again) != string(text) {
					t.Fatalf("%s, %s: %s\nis written again as %s", kind, format, text, again)
				}
			}
		}
	}
}

// alter changes all that can be reached from a value: also behind pointers, in lists and in maps.
func alter(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			alter(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				alter(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			alter(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			one := reflect.New(v.Type().Elem()).Elem()
			one.Set(v.MapIndex(key))
			alter(one)
			v.SetMapIndex(key, one)
		}
		if v.Len() > 0 {
			v.SetMapIndex(reflect.ValueOf("another").Convert(v.Type().Key()), reflect.Zero(v.Type().Elem()))
		}
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Uint8:
		v.SetUint(v.Uint() ^ 1)
	case reflect.Bool:
		v.SetBool(!v.Bool())
	}
}

// A copy is equal and has nothing in common: what is changed in it, anywhere, does not change what it was made of. Of nothing it is nothing.
func TestCopiesHaveNothingInCommon(t *testing.T) {
	types := map[string]reflect.Type{"Placement": reflect.TypeFor[Placement](), "ServiceIngresses": reflect.TypeFor[ServiceIngresses](),
		"Drain": reflect.TypeFor[Drain](), "OutOfSync": reflect.TypeFor[OutOfSync](), "ServiceIPs": reflect.TypeFor[ServiceIPs](),
		"ClusterSelectorRequirement": reflect.TypeFor[ClusterSelectorRequirement](), "ReplicaPreferences": reflect.TypeFor[ReplicaPreferences]()}
	for kind, of := range ownKinds(t) {
		types[kind] = of
	}
	for kind, of := range types {
		r := rand.New(rand.NewPCG(2, uint64(len(kind))))
		for range 15 {
			object := reflect.New(of)
			fillAny(r, object.Elem())
			before := fmt.Sprint(asJSON(object.Interface()))
			copied := object.MethodByName("DeepCopy").Call(nil)[0]
			if !reflect.DeepEqual(copied.Interface(), object.Interface()) {
				t.Fatalf("%s: %s\nis copied as %s", kind, before, asJSON(copied.Interface()))
			}
			alter(copied)
			if after := asJSON(object.Interface()); after != before {
				t.Fatalf("%s: the copy was changed, and made\n%s of\n%s", kind, after, before)
			}
			if o, ok := object.Interface().(runtime.Object); ok {
				again := o.DeepCopyObject()
				if alter(reflect.ValueOf(again)); again == o || asJSON(o) != before {
					t.Fatalf("%s: DeepCopyObject shares something: %s", kind, before)
				}
			}
		}
		if nothing := reflect.Zero(reflect.PointerTo(of)); !nothing.MethodByName("DeepCopy").Call(nil)[0].IsNil() {
			t.Errorf("%s: the copy of nothing is something", kind)
		}
	}
}

// Each kind of ours that is stored has a list, and each has the resource whose name Kubernetes' tools guess from its own.
func TestKindsHaveListsAndResources(t *testing.T) {
	kinds, resources := ownKinds(t), map[string]bool{}
	for kind, of := range kinds {
		if _, has := of.FieldByName("Spec"); !has {
			continue
		}
		plural, _ := meta.UnsafeGuessKindToResource(SchemeGroupVersion.WithKind(kind))
		resources[plural.Resource] = true
		list, listed := kinds[kind+"List"]
		if stored := !strings.HasSuffix(kind, "Review"); listed != stored {
			t.Errorf("%s: it has a list: %t, want %t", kind, listed, stored)
		}
		if items, _ := fieldNamed(list, "Items"); listed && items.Type != reflect.SliceOf(of) {
			t.Errorf("%sList has items of type %s", kind, items.Type)
		}
	}
	named := map[string]bool{}
	for _, of := range []schema.GroupVersionResource{ClustersResource, PoliciesResource, FailoverReviewsResource, PlacementReviewsResource, ReadinessResource,
		DNSNameGrantsResource, FailoverDrillsResource, DrillSchedulesResource} {
		if of.GroupVersion() != SchemeGroupVersion {
			t.Errorf("%s is of another group or version", of)
		}
		named[of.Resource] = true
	}
	if !reflect.DeepEqual(named, resources) {
		t.Errorf("the resources are %v, want %v", named, resources)
	}
}

func fieldNamed(of reflect.Type, name string) (reflect.StructField, bool) {
	if of == nil {
		return reflect.StructField{}, false
	}
	return of.FieldByName(name)
}

// declared is a field of a struct as its file has it.
type declared struct{ where, name, json, doc string }

// declaredFields returns the fields of all structs in the files of types that have a name in JSON, by struct.
func declaredFields(t *testing.T) map[string][]declared {
	t.Helper()
	files, err := filepath.Glob("types*.go")
	if err != nil || len(files) < 5 {
		t.Fatalf("%q, %v", files, err)
	}
	structs := map[string][]declared{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if of, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range of.Fields.List {
					if f.Tag != nil && len(f.Names) == 1 {
						tag := reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json")
						doc := ""
						if f.Doc != nil { // Text leaves out markers
							for _, line := range f.Doc.List {
								doc += line.Text + "\n"
							}
						}
						structs[spec.Name.Name] = append(structs[spec.Name.Name], declared{spec.Name.Name + "." + f.Names[0].Name, f.Names[0].Name, tag, doc})
					}
				}
			}
			return true
		})
	}
	return structs
}

// Fields of the API follow Kubernetes' conventions, by which openapi, kubectl explain and server-side apply read them: the name in JSON is that in
// Go; what is optional is left out where it is empty, and only that; each says what it is; the key of a list is a field of its items.
func TestFieldsFollowConventions(t *testing.T) {
	structs := declaredFields(t)
	itemKeys := map[string]bool{"type": true} // metav1.Condition
	for _, fields := range structs {
		for _, f := range fields {
			name, _, _ := strings.Cut(f.json, ",")
			itemKeys[name] = true
		}
	}
	optional, internal := 0, []string{"Isolation"} // is no part of the API, but of a Lease
	for of, fields := range structs {
		if slices.Contains(internal, of) {
			continue
		}
		for _, f := range fields {
			name, omits := strings.CutSuffix(f.json, ",omitempty")
			marked := strings.Contains(f.doc, "// +optional\n")
			if words := regexp.MustCompile(`^[A-Z]+`).FindString(f.name); !slices.ContainsFunc([]int{1, len(words) - 1, len(words)}, func(n int) bool {
				return n > 0 && name == strings.ToLower(f.name[:n])+f.name[n:]
			}) {
				t.Errorf("%s is called %s", f.where, name)
			}
			if omits != marked {
				t.Errorf("%s: optional: %t, left out where it is empty: %t", f.where, marked, omits)
			}
			if says := regexp.MustCompile(`(?m)^// [A-Za-z]`); !says.MatchString(f.doc) {
				t.Errorf("%s does not say what it is", f.where)
			}
			if at := regexp.MustCompile(`listMapKey=(\w+)`).FindStringSubmatch(f.doc); strings.Contains(f.doc, "listType=map") != (at != nil) || at != nil &&
				!itemKeys[at[1]] {
				t.Errorf("%s has no key of its items: %q", f.where, f.doc)
			}
			if marked {
				optional++
			}
		}
	}
	if optional < 100 {
		t.Errorf("%d fields are optional: this says little", optional)
	}
}
