package plan

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestStatements(t *testing.T) {
	found := map[string]bool{"a": true, "b": true, "c": false}
	for name, c := range map[string]struct {
		others []Statement
		want   string
	}{
		"alone":                            {nil, `{"lost":["c"]}`},
		"nobody doubts":                    {[]Statement{{}, {Well: []string{"a"}}}, `{"lost":["c"]}`},
		"another does not reach it":        {[]Statement{{Lost: []string{"b"}}, {Lost: []string{"b"}}}, `{"lost":["c"],"well":["b"]}`},
		"both do not reach it":             {[]Statement{{Lost: []string{"c"}}}, `{"lost":["c"]}`},
		"nothing is known of it here":      {[]Statement{{Lost: []string{"x"}}}, `{"lost":["c"]}`},
		"what others find well is no news": {[]Statement{{Well: []string{"c"}}}, `{"lost":["c"]}`},
	} {
		s := State(found, c.others)
		if s.String() != c.want {
			t.Errorf("%s: %s, want %s", name, s, c.want)
		}
		if read, ok := ParseStatement(s.String()); !ok || !reflect.DeepEqual(read, s) {
			t.Errorf("%s: read as %v, %v", name, read, ok)
		}
	}
	if s, ok := ParseStatement("{}"); !ok || s.Lost != nil {
		t.Errorf("an empty one: %v, %v", s, ok)
	}
}

// A federation that is cut off from a thousand clusters must not write their names every two seconds, and a Lease may
// contain anything.
func TestStatementsAreBounded(t *testing.T) {
	found, doubt := map[string]bool{}, Statement{}
	for i := range 1000 {
		found[fmt.Sprintf("%04d", i)] = i%2 == 0
		doubt.Lost = append(doubt.Lost, fmt.Sprintf("%04d", i))
	}
	s := State(found, []Statement{doubt})
	if len(s.Lost) != 64 || len(s.Well) != 64 || s.Lost[63] != "0127" || s.Well[63] != "0126" {
		t.Errorf("%d lost, %d well: %v", len(s.Lost), len(s.Well), s)
	}
	if s, ok := ParseStatement(doubt.String()); !ok || len(s.Lost) != 64 {
		t.Errorf("%d are read, %v", len(s.Lost), ok)
	}
	for _, text := range []string{"", "x", `{"lost":1}`, `{"lost":["` + strings.Repeat("x", 64<<10) + `"]}`} {
		if s, ok := ParseStatement(text); ok {
			t.Errorf("%.20q is read as %v", text, s)
		}
	}
}
