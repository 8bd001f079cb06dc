package phrase

import (
	"testing"
	"time"
)

func TestPhrases(t *testing.T) {
	eleven := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"}
	for got, want := range map[string]string{
		Count(1, "replica"): "1 replica", Count(0, "object"): "0 objects",
		Subject(1, "replica", "fits", "fit"): "1 replica fits", Subject(2, "pod", "there has", "there have"): "2 pods there have",
		Some(nil): "none", Some(eleven[:MaxNames]): "a, b, c, d, e, f, g, h, i, j", Some(eleven): "a, b, c, d, e, f, g, h, i, j and 1 more",
		Prefixed(": ", ""): "", Prefixed(": ", "x"): ": x",
		Join("; ", "", "a", "", "b"): "a; b", Join(","): "",
		Since(time.Unix(0, 0), time.Unix(90, 0)): "90s",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
