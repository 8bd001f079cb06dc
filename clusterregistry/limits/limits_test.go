package limits

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"
)

const mib = 1 << 20

// reads returns how much of an answer can be read, and how that ended.
func reads(t *testing.T, m *Meter, query string, answer http.HandlerFunc) (int64, error) {
	t.Helper()
	server := httptest.NewServer(answer)
	defer server.Close()
	defer server.CloseClientConnections()
	client := &http.Client{Transport: m.Transport(http.DefaultTransport)}
	response, err := client.Get(server.URL + query)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return io.Copy(io.Discard, response.Body)
}

func send(w io.Writer, megabytes int) {
	zeros := make([]byte, mib)
	for range megabytes {
		if _, err := w.Write(zeros); err != nil {
			return
		}
	}
}

func TestAnAnswerIsCutOffAtItsLimit(t *testing.T) {
	endless := func(w http.ResponseWriter, _ *http.Request) { send(w, 1<<20) }
	bomb := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		send(z, 64)
	}
	for name, test := range map[string]struct {
		limits Limits
		query  string
		answer http.HandlerFunc
		most   int64
		what   string
	}{
		"endless":                        {limits: Limits{Response: 4 * mib}, answer: endless, most: 4 * mib, what: "one answer"},
		"compressed":                     {limits: Limits{Response: 4 * mib}, answer: bomb, most: 4 * mib, what: "one answer"},
		"a watch, more than it may have": {limits: Limits{Response: 1, Burst: 8 * mib, Rate: 1}, query: "?watch=true", answer: endless, most: 8 * mib, what: "all that it sends at once"},
	} {
		t.Run(name, func(t *testing.T) {
			heard := 0
			m := New(test.limits, func(string) { heard++ })
			got, err := reads(t, m, test.query, test.answer)
			var over *ExceededError
			if !errors.As(err, &over) || over.What != test.what || got > test.most {
				t.Errorf("%d bytes were read, then: %v; want at most %d, then too much of %q", got, err, test.most, test.what)
			}
			if _, err := reads(t, m, "", endless); !errors.As(err, &over) {
				t.Errorf("the next request ends with: %v", err)
			}
			if heard != 1 {
				t.Errorf("reported %d times, want once", heard)
			}
		})
	}
}

// A long error is no reason to leave a member alone, and none to read it all.
func TestErrorsAreReadInPart(t *testing.T) {
	m := New(Limits{}, func(reason string) { t.Error(reason) })
	got, err := reads(t, m, "", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		send(w, 3)
	})
	if got != errorText || err != nil {
		t.Errorf("%d bytes were read, then: %v; want %d bytes", got, err, errorText)
	}
}

func TestWhatIsWithinTheLimitsIsReadWhole(t *testing.T) {
	m := New(Limits{Response: 4 * mib, Burst: 10 * mib, Rate: mib}, func(reason string) { t.Error(reason) })
	clock := time.Now()
	m.now = func() time.Time { return clock }
	for range 10 {
		got, err := reads(t, m, "", func(w http.ResponseWriter, _ *http.Request) { send(w, 4) })
		if got != 4*mib || err != nil {
			t.Fatalf("%d bytes, %v", got, err)
		}
		clock = clock.Add(4 * time.Second)
	}
}

// What is kept counts; what nobody keeps any more does not.
func TestObjectsCountWhileTheyAreKept(t *testing.T) {
	type object [1024]byte
	heard := 0
	m := New(Limits{Held: 64 << 10}, func(string) { heard++ })
	for range 1000 {
		Hold(m, &object{}, 0)
		for m.held.Load() > 32<<10 { // nobody has them: they go
			runtime.GC()
			time.Sleep(time.Millisecond)
		}
	}
	if heard != 0 {
		t.Fatal("what was freed counts")
	}
	var kept []*object
	for range 200 {
		kept = append(kept, &object{})
		Hold(m, kept[len(kept)-1], 0)
	}
	if heard != 1 {
		t.Errorf("reported %d times, want once", heard)
	}
	runtime.KeepAlive(kept)
}
