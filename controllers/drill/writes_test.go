package drill

import (
	"errors"
	"net/http"
	"testing"
	"time"
)

func TestP99OfWrites(t *testing.T) {
	var w Writes
	now := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	for i := range 100 {
		w.recordWrite(now.Add(-time.Second), time.Duration(i+1)*time.Millisecond)
	}
	w.recordWrite(now.Add(-25*time.Second), 2*time.Second)
	w.recordWrite(now.Add(-31*time.Second), time.Minute)
	if got := w.P99(now); got != [3]time.Duration{99 * time.Millisecond, 0, 2 * time.Second} {
		t.Errorf("got %v", got)
	}
	if got := w.P99(now.Add(time.Minute)); got != [3]time.Duration{} || len(w.last) > 0 {
		t.Errorf("a minute later %v, of %d", got, len(w.last))
	}
}

// Writes are counted, including failed ones; reads and watches are not.
func TestWritesAreCounted(t *testing.T) {
	var w Writes
	rt := w.Wrap(roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("refused") }))
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPatch} {
		r, err := http.NewRequest(method, "http://federation/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rt.RoundTrip(r); err == nil {
			t.Error("the error is lost")
		}
	}
	if len(w.last) != 2 {
		t.Errorf("%d writes, want 2", len(w.last))
	}
}
