package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// The store's hooks (here:) write the index, and so does a watch, which reports the same later, and others' writes.
// Each case is a list of events, and the content afterwards, as NAME@VERSION.
func TestTheIndexHasTheNewestState(t *testing.T) {
	for told, want := range map[string]string{
		"here:add:a@1": "a@1",
		"here:add:a@1 watch:add:a@1 here:add:a@3 watch:add:b@2":        "a@3 b@2",
		"here:add:a@5 watch:add:a@4":                                   "a@5",
		"watch:add:a@1 watch:delete:a@2":                               "",
		"here:add:a@1 here:delete:a@2 watch:add:a@1":                   "",
		"here:add:a@1 here:delete:a@2 here:add:a@3 watch:add:a@1":      "a@3",
		"here:add:a@1 here:delete:a@2 here:add:a@3 watch:delete:a@2":   "a@3",
		"here:delete:a@2 watch:add:a@1 watch:delete:a@2 watch:add:a@3": "a@3",
		"here:add:a@9 watch:add:b@1 list:c@5":                          "a@9 c@5",
		"watch:add:a@4 list:c@5":                                       "c@5",
		"here:delete:a@4 list:a@5":                                     "a@5",
	} {
		index := NewIndex()
		for step := range strings.SplitSeq(told, " ") {
			tell(t, index, step)
		}
		var got []string
		for _, p := range index.In("shop") {
			got = append(got, p.Name+"@"+p.ResourceVersion)
		}
		slices.Sort(got)
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s: has %q, want %q", told, s, want)
		}
		if want == "" && len(index.spaces) > 0 {
			t.Errorf("%s: the namespace is kept", told)
		}
	}
}

func tell(t *testing.T, index *Index, step string) {
	t.Helper()
	how, what, _ := strings.Cut(step[:strings.LastIndex(step, ":")], ":")
	name, version, _ := strings.Cut(step[strings.LastIndex(step, ":")+1:], "@")
	p := &v1beta1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: version}}
	var err error
	switch how + ":" + what {
	case "list:":
		err = index.Replace([]any{p}, version)
	case "here:add", "watch:add":
		err = index.Add(p)
	case "here:delete":
		err = index.deletedHere(p)
	case "watch:delete":
		err = index.Delete(p)
	default:
		err = fmt.Errorf("unknown step %q", step)
	}
	if err != nil {
		t.Fatal(err)
	}
}
