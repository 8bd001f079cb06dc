package limits

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// Events of any size below the limit pass, in whatever parts they come; one above it does not, be it one text, one list or blanks.
func TestEventsOfJSONAreBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var stream bytes.Buffer
	for range 400 {
		text, err := json.Marshal(map[string]any{"a": strings.Repeat(`{"\x[`, r.IntN(40000)), "b": []any{1, map[string]any{"}": "]"}}})
		if err != nil {
			t.Fatal(err)
		}
		stream.Write(append(text, '\n'))
	}
	if stream.Len() < 2*maxEvent {
		t.Fatalf("%d bytes are no more than one event may have", stream.Len())
	}
	events := &jsonEvents{}
	for stream.Len() > 0 {
		if events.read(stream.Next(1 + r.IntN(100000))) {
			t.Fatal("events below the limit are too large")
		}
	}
	for name, c := range map[string]struct{ begin, part string }{
		"a text": {`{"a":"`, `\"}`}, "a list": {`[`, `{},`}, "lists in lists": {"", "["}, "blanks": {"", " \n"}, "ends in a text": {`"`, "}"},
	} {
		events, sent, part := &jsonEvents{}, 0, []byte(strings.Repeat(c.part, 1000))
		events.read([]byte(c.begin))
		for sent <= maxEvent && !events.read(part) {
			sent += len(part)
		}
		if sent > maxEvent {
			t.Errorf("%s passes without an end", name)
		}
	}
}
