package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"federation/apiserver/apis/federation/v1beta1"
)

// somePointer returns a JSON pointer of up to three tokens that often leads somewhere in what someValue makes.
func somePointer(chance *rand.Rand) (pointer string) {
	for range 1 + chance.IntN(3) {
		pointer += "/" + []string{"a", "b", "x~1y~0", "0", "1", "-"}[chance.IntN(6)]
	}
	return pointer
}

// someValue returns a JSON value with the keys and indices that somePointer asks for.
func someValue(chance *rand.Rand, depth int) any {
	switch n := chance.IntN(5); {
	case n < 2 && depth > 0:
		m := map[string]any{}
		for _, key := range []string{"a", "b", "x/y~", "0"} {
			if chance.IntN(2) == 0 {
				m[key] = someValue(chance, depth-1)
			}
		}
		return m
	case n == 2 && depth > 0:
		list := []any{}
		for range chance.IntN(4) {
			list = append(list, someValue(chance, depth-1))
		}
		return list
	}
	return []any{"web", true, 1.5, "", false, int64(7)}[chance.IntN(6)]
}

// Patches make what the library makes that the API server itself uses, and are refused where it refuses them. It is laxer than RFC 6902 where nothing is at a
// path, so there they may be refused although it goes on.
func TestPatchesAreAsTheLibrarysOwn(t *testing.T) {
	chance, applied := rand.New(rand.NewPCG(51, 1)), 0
	for range 20_000 {
		doc := map[string]any{"a": someValue(chance, 3), "b": someValue(chance, 2), "x/y~": someValue(chance, 1)}
		text, _ := json.Marshal(doc)
		var ops []v1beta1.JSONPatchOperation
		for range 1 + chance.IntN(3) {
			o := op([]string{"add", "replace", "remove", "copy", "move", "test"}[chance.IntN(6)], somePointer(chance), "")
			if o.From = somePointer(chance); strings.HasPrefix(o.Path+"/", o.From+"/") {
				o.From = ""
			}
			switch o.Op {
			case "add", "replace", "test":
				value, _ := json.Marshal(someValue(chance, 2))
				o = op(o.Op, o.Path, string(value))
			case "copy", "move":
				if o.From == "" {
					continue
				}
			default:
				o.From = ""
			}
			ops = append(ops, o)
		}
		patchText, _ := json.Marshal(ops)
		theirs, err := jsonpatch.DecodePatch(patchText)
		if err != nil {
			t.Fatal(err)
		}
		want, wantErr := theirs.Apply(text)
		p, gotErr := newPatch(doc), error(nil)
		for _, o := range ops {
			if gotErr = p.apply(o); gotErr != nil {
				break
			}
		}
		if lax := wantErr == nil && errors.Is(gotErr, errNothingThere); (gotErr == nil) != (wantErr == nil) && !lax {
			t.Fatalf("%s\npatched by %s: error %v, the library says %v", text, patchText, gotErr, wantErr)
		}
		if gotErr != nil {
			continue
		}
		var is, should any
		if err := json.Unmarshal(want, &should); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(JSON(p.root), &is); err != nil {
			t.Fatal(err)
		}
		if applied++; !reflect.DeepEqual(is, should) {
			t.Fatalf("%s\npatched by %s:\ngot  %s\nwant %s", text, patchText, JSON(p.root), want)
		}
	}
	if applied < 1000 {
		t.Errorf("only %d patches applied", applied)
	}
}

// What is copied is a value of its own: a change of the copy leaves the original as it is.
func TestPatchCopiesAreTheirOwn(t *testing.T) {
	p := newPatch(map[string]any{"a": map[string]any{"list": []any{"x"}}})
	for _, o := range []v1beta1.JSONPatchOperation{{Op: "copy", From: "/a", Path: "/b"}, op("add", "/b/list/0", `"y"`), op("replace", "/a/list/0", `"z"`)} {
		if err := p.apply(o); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := string(JSON(p.root)), `{"a":{"list":["z"]},"b":{"list":["y","x"]}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// An operation that is none, has no value, or is about the whole object is refused with a cause, and so is the one with which more is added than etcd stores.
func TestPatchRefusals(t *testing.T) {
	large := op("add", "/b", fmt.Sprintf("%q", strings.Repeat("x", maxPatched/2)))
	for _, c := range []struct {
		want string
		ops  []v1beta1.JSONPatchOperation
	}{
		{"needs a value", []v1beta1.JSONPatchOperation{{Op: "add", Path: "/a"}}},
		{"must not be the whole object", []v1beta1.JSONPatchOperation{op("replace", "", `{}`)}},
		{"no such operation", []v1beta1.JSONPatchOperation{op("merge", "/a", `{}`)}},
		{"unexpected end of JSON input", []v1beta1.JSONPatchOperation{op("test", "/a", `{`)}},
		{"from /none: there is nothing at that path", []v1beta1.JSONPatchOperation{{Op: "move", From: "/none", Path: "/a"}}},
		{"there is nothing at that path", []v1beta1.JSONPatchOperation{op("add", "/a/b", `1`)}},
		{"adds 786434 bytes, with those before 1572868: overrides may add at most 1572864 bytes", []v1beta1.JSONPatchOperation{large, large}},
		{"adds 786434 bytes, with those before 1572868: overrides may add at most 1572864 bytes", []v1beta1.JSONPatchOperation{large, {Op: "copy", From: "/b",
			Path: "/c"}}},
		{"<nil>", []v1beta1.JSONPatchOperation{large, {Op: "move", From: "/b", Path: "/c"}, op("test", "/c", string(large.Value.Raw)), {Op: "move", From: "/c",
			Path: "/b"}}},
	} {
		p, err := newPatch(map[string]any{"a": "text"}), error(nil)
		for _, o := range c.ops {
			if err == nil {
				err = p.apply(o)
			}
		}
		if got := fmt.Sprint(err); got != c.want {
			t.Errorf("got %.200s, want %s", got, c.want)
		}
	}
}

// The merge patch of two values, applied by the library to the one, makes the other.
func TestMergePatchOfTurnsOneIntoTheOther(t *testing.T) {
	chance := rand.New(rand.NewPCG(52, 1))
	for range 5000 {
		from, to := map[string]any{"a": someValue(chance, 3), "k": "x"}, map[string]any{"a": someValue(chance, 3), "b": someValue(chance, 2)}
		was, _ := json.Marshal(from)
		text, _ := json.Marshal(mergePatchOf(from, to))
		got, err := jsonpatch.MergePatch(was, text)
		if err != nil {
			t.Fatal(err)
		}
		var is any
		if err := utiljson.Unmarshal(got, &is); err != nil || !reflect.DeepEqual(is, any(to)) {
			t.Fatalf("%s merged with %s is %s, want %v", was, text, got, to)
		}
	}
}

// A value is in sync with itself and with whatever a member adds to it, and not with one of which something is changed that was not empty. What a member
// changed is named alike as long as it stays so.
func TestSettleNamesWhatAMemberChanged(t *testing.T) {
	chance, spoiled := rand.New(rand.NewPCG(53, 1)), 0
	for range 3000 {
		want := parse(t, web)
		want.Object["spec"] = map[string]any{"a": someValue(chance, 3), "b": someValue(chance, 2)}
		d := Desired{configuration: configuration{Object: want, Hash: "h"}}
		have := want.DeepCopy()
		have.SetAnnotations(map[string]string{v1beta1.AppliedHashAnnotation: "h"})
		for key, value := range want.GetAnnotations() {
			have.SetAnnotations(mergedWith(have.GetAnnotations(), key, value))
		}
		have.Object["spec"].(map[string]any)["added"] = someValue(chance, 2)
		if settled := Settle(d, have); settled != "" || !InSync(d, have, "") {
			t.Fatalf("%v with an addition: settled %q, in sync %t", want.Object["spec"], settled, InSync(d, have, ""))
		}
		other := someValue(chance, 2)
		if have.Object["spec"].(map[string]any)["b"] = other; contains(want.Object["spec"], have.Object["spec"]) {
			continue
		}
		spoiled++
		settled := Settle(d, have)
		have.Object["spec"].(map[string]any)["added"] = "something else"
		if InSync(d, have, "") || InSync(d, have, "h-other") || !InSync(d, have, settled) || settled != Settle(d, have) {
			t.Fatalf("%v, changed to %v: settled %q, then %q", want.Object["spec"], have.Object["spec"], settled, Settle(d, have))
		}
		have.SetAnnotations(mergedWith(have.GetAnnotations(), v1beta1.AppliedHashAnnotation, "another"))
		if InSync(d, have, settled) {
			t.Fatalf("in sync though something else was applied last")
		}
	}
	if spoiled < 1000 {
		t.Errorf("only %d were changed", spoiled)
	}
}

func mergedWith(all map[string]string, key, value string) map[string]string {
	all[key] = value
	return all
}

// A test compares numbers by what they are, at any depth, and nothing else loosely.
func TestPatchTestsNumbersByValue(t *testing.T) {
	for _, tc := range []struct {
		is, value any
		want      bool
	}{
		{int64(3), 3.0, true}, {3.0, int64(3), true}, {int64(3), int64(3), true}, {int64(3), 3.5, false}, {int64(1), true, false}, {"3", int64(3), false},
		{[]any{int64(3)}, []any{3.0}, true}, {[]any{int64(3)}, []any{3.0, 3.0}, false}, {map[string]any{"a": int64(3)}, map[string]any{"a": 3.0}, true},
		{map[string]any{"a": int64(3)}, map[string]any{"b": 3.0}, false}, {nil, nil, true}, {nil, "", false}, {map[string]any{}, []any{}, false},
		{int64(1 << 60), int64(1<<60 + 1), false},
	} {
		if got := equalJSON(tc.is, tc.value); got != tc.want {
			t.Errorf("%#v and %#v: %t", tc.is, tc.value, got)
		}
	}
}
