package plan

import (
	"encoding/json"
	"math/rand"
	"testing"
)

// someJSON returns a value of the types in unstructured objects, and of some others.
func someJSON(r *rand.Rand, depth int) any {
	texts := []string{"", "web", "a/b.c-1", `"`, `\`, "<b>&", "é", "\u2028", "\x00\n", "\xff", "~ "}
	switch n := r.Intn(10); {
	case n < 2 && depth > 0:
		m := map[string]any{}
		for range r.Intn(20) {
			m[texts[r.Intn(len(texts))]+string(rune('a'+r.Intn(26)))] = someJSON(r, depth-1)
		}
		return m
	case n < 4 && depth > 0:
		list := []any{}
		for range r.Intn(4) {
			list = append(list, someJSON(r, depth-1))
		}
		return list
	case n == 4:
		return []any{nil, true, false, map[string]any(nil), []any(nil), int32(7), map[string]string{"b": "<", "a": ""}}[r.Intn(7)]
	case n == 5:
		return r.Int63() - r.Int63()
	case n == 6:
		return []float64{0, 1, -1.5, 1e21, 1e-7, 123456789}[r.Intn(6)]
	}
	return texts[r.Intn(len(texts))]
}

func TestJSONIsWrittenAsByTheStandardLibrary(t *testing.T) {
	const seed = 11
	r := rand.New(rand.NewSource(seed))
	for range 5000 {
		value := someJSON(r, 4)
		want, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if got := JSON(value); string(got) != string(want) {
			t.Fatalf("seed %d:\n%s\n%s", seed, got, want)
		}
	}
}
