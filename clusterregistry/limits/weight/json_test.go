package weight

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"
)

// decodeJSON decodes into a type of Go, or into any values.
func decodeJSON(data []byte, typed bool) {
	var into any = new(any)
	if typed {
		into = &corev1.PodList{}
	}
	_ = kjson.UnmarshalCaseSensitivePreserveInts(data, into)
}

// Many of the shortest values take no more than is said.
func TestNoJSONTakesMoreThanItWeighs(t *testing.T) {
	for name, c := range map[string]struct{ begin, item, end string }{
		"empty objects": {`{"items":[`, `{},`, `{}]}`}, "nothing": {`{"items":[`, `null,`, `{}]}`}, "numbers": {`{"items":[`, `0,`, `0]}`}, "texts": {`{"items":[`, `"",`, `""]}`}, "lists": {`[`, `[],`, `[]]`},
		"objects with one key": {`[`, `{"":0},`, `0]`}, "objects in objects": {strings.Repeat(`{"a":`, 900), ``, `0` + strings.Repeat(`}`, 900)}, "containers": {`{"items":[{"spec":{"containers":[`, `{},`, `{}]}}]}`},
		"volumes": {`{"items":[{"spec":{"volumes":[`, `{"secret":{}},`, `{}]}}]}`}, "lists in lists": {strings.Repeat("[", 900), ``, strings.Repeat(`]`, 900)}, "arguments": {`{"items":[{"spec":{"containers":[{"args":[`, `"",`, `""]}]}}]}`},
	} {
		data := []byte(c.begin + strings.Repeat(c.item, 5000) + c.end)
		for _, typed := range []bool{false, true} {
			w := NewJSON(typed)
			if _, _, err := w.Add(data); err != nil {
				continue // nobody decodes it
			}
			if took := allocated(func() { decodeJSON(data, typed) }); took > garbage*w.total.takes+8*int64(len(data))+spare {
				t.Errorf("%s, typed %v: %d bytes take %d, weighed %d", name, typed, len(data), took, w.total.takes)
			}
		}
	}
}

// What clusters send in JSON costs its length, where it is read as JSON.
func TestHonestJSONCostsItsLength(t *testing.T) {
	for kind, list := range honest() {
		data, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		any, typed := NewJSON(false), NewJSON(true)
		if cost, _, err := any.Add(data); cost != int64(len(data)) || err != nil {
			t.Errorf("%s: %d bytes cost %d, %v", kind, len(data), cost, err)
		}
		if _, _, err := typed.Add(data); err != nil {
			t.Errorf("%s as types of Go: %v", kind, err)
		}
		t.Logf("%s: %d bytes take %.1f times that, and %.1f times in types of Go", kind, len(data), float64(any.total.takes)/float64(len(data)), float64(typed.total.takes)/float64(len(data)))
	}
}

// Values that follow each other are weighed one by one, in whatever parts they come.
func TestEventsOfJSONAreWeighedOneByOne(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var stream bytes.Buffer
	most := int64(0)
	for range 100 {
		text, err := json.Marshal(map[string]any{"a": strings.Repeat(`{"\x[`, r.IntN(4000)), "b": []any{1, map[string]any{"}": "]"}}})
		if err != nil {
			t.Fatal(err)
		}
		one, _, _ := NewJSON(false).Add(text)
		most = max(most, one)
		stream.Write(append(text, '\n'))
	}
	length, w, largest, total := int64(stream.Len()), NewJSON(false), int64(0), int64(0)
	for stream.Len() > 0 {
		var event int64
		total, event, _ = w.Add(stream.Next(1 + r.IntN(100000)))
		largest = max(largest, event)
	}
	if largest < most || largest > most+1 || total < length { // with the end of the line before
		t.Errorf("the largest event costs %d, and by itself %d; all cost %d, and have %d bytes", largest, most, total, length)
	}
	for name, c := range map[string]struct{ begin, part string }{
		"a text": {`{"a":"`, `\"}`}, "a list": {`[`, `{},`}, "lists in lists": {"", "["}, "blanks": {"", " \n"}, "ends in a text": {`"`, "}"},
	} {
		w, sent, event, err := NewJSON(false), 0, int64(0), error(nil)
		_, _, _ = w.Add([]byte(c.begin))
		for part := []byte(strings.Repeat(c.part, 1000)); sent < 1<<20; sent += len(part) {
			if _, event, err = w.Add(part); err != nil {
				break // too deep
			}
		}
		if err == nil && event < int64(sent) {
			t.Errorf("%s: %d bytes cost %d as one event", name, sent, event)
		}
	}
}

// Nothing takes more memory than it weighs.
func FuzzJSON(f *testing.F) {
	f.Add(`{"items":[`, `{},`, `{}]}`)
	f.Add(`[`, `{"":0},`, `0]`)
	f.Add(``, `["`, ``)
	f.Fuzz(func(t *testing.T, begin, item, end string) {
		data := []byte(begin + strings.Repeat(item, min(2000, (1<<20)/max(1, len(item)))) + end)
		for _, typed := range []bool{false, true} {
			w := NewJSON(typed)
			if _, _, err := w.Add(data); err != nil {
				continue // nobody decodes it
			}
			if took := allocated(func() { decodeJSON(data, typed) }); took > garbage*w.total.takes+8*int64(len(data))+(1<<20) {
				t.Errorf("typed %v: %d bytes take %d, weighed %d", typed, len(data), took, w.total.takes)
			}
		}
	})
}

// Numbers that would be written out, zero by zero, are refused where quantities are read, and nowhere else.
func TestHugeNumbersInJSON(t *testing.T) {
	for text, huge := range map[string]bool{
		`{"cpu":"1e2000000000"}`: true, `{"cpu":1e999}`: true, `{"cpu":"1E+1000"}`: true, `{"cpu":" 1e2000000000"}`: true, "{\"cpu\":\"1e2000000000\u00a0\"}": true, "{\"cpu\":\"\u30001e2000000000  \"}": true, `{"cpu":"` + strings.Repeat("1", 200) + `Ki"}`: true, `{"cpu":"` + strings.Repeat("1", 200) + `"}`: true,
		`{"a":"e2e-1234"}`: false, `{"a":"1.2.3-e2e.100"}`: false, `{"a":"2\u003e\u00261"}`: false, `{"a":"1e200 1e300"}`: false,
		`{"cpu":"1e10"}`: false, `{"cpu":"12Ei"}`: false, `{"a":"12e4567a"}`: false, `{"a":"` + strings.Repeat("-", 200) + `"}`: false, `{"a":"2026-11-26T10:00:00Z"}`: false, `{"a":"\u003ca\u003e"}`: false, `{"a":[true,false,null,1.5e3]}`: false,
	} {
		_, _, typed := NewJSON(true).Add([]byte(text))
		_, _, any := NewJSON(false).Add([]byte(text))
		if (typed != nil) != huge || any != nil {
			t.Errorf("%.60s: %v in types of Go, %v as any values", text, typed, any)
		}
	}
}
