package writegate

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestNothingIsWrittenAtAClosedGate(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Method) }))
	defer server.Close()
	now := time.Hour
	g := New(6*time.Second, func() time.Duration { return now })
	client := &http.Client{Transport: g.Wrap(http.DefaultTransport)}
	try := func(method string) error {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err == nil {
			answer.Body.Close()
		}
		return err
	}
	if err := try(http.MethodPost); !errors.Is(err, ErrClosed) {
		t.Errorf("before the first renewal: %v", err)
	}
	g.Renewed(now)
	now += 6*time.Second - 1
	if err := try(http.MethodPatch); err != nil {
		t.Errorf("within the time: %v", err)
	}
	now++
	if err := try(http.MethodPatch); !errors.Is(err, ErrClosed) {
		t.Errorf("after it: %v", err)
	}
	if err := try(http.MethodGet); err != nil {
		t.Errorf("a read: %v", err)
	}
	g.Renewed(now)
	if err := try(http.MethodDelete); err != nil {
		t.Errorf("renewed: %v", err)
	}
	if want := "PATCH GET DELETE"; strings.Join(got, " ") != want {
		t.Errorf("arrived: %q, want %q", got, want)
	}
}
