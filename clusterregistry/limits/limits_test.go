package limits

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const mib = 1 << 20

// reads returns how much of an answer can be read, and how that ended.
func reads(t *testing.T, m *Meter, query string, answer http.HandlerFunc) (int64, error) {
	t.Helper()
	server := httptest.NewServer(answer)
	defer server.Close()
	defer server.CloseClientConnections()
	client := &http.Client{Transport: m.Transport(http.DefaultTransport.(*http.Transport).Clone())}
	response, err := client.Get(server.URL + query)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return io.Copy(io.Discard, response.Body)
}

// TestCompressedAnswersAreRead: what members compress is asked for so, and comes as if it had not been; whoever asks for an encoding gets that.
func TestCompressedAnswersAreRead(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			t.Errorf("asked for %q", r.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		_, _ = io.WriteString(z, strings.Repeat("all is well ", 1<<14)) // compressed 200 times and more, and short
	}))
	defer server.Close()
	m := New(Limits{}, func(reason string) { t.Error(reason) })
	client := &http.Client{Transport: m.Transport(http.DefaultTransport.(*http.Transport).Clone())}
	for asked, want := range map[string]string{"": "all is well ", "gzip": "\x1f\x8b"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		if asked != "" {
			request.Header.Set("Accept-Encoding", asked)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil || !strings.HasPrefix(string(body), want) || asked == "" && (len(body) != 12<<14 || response.Header.Get("Content-Encoding") != "") {
			t.Errorf("asked for %q: %d bytes that begin with %.12q, %v, %v", asked, len(body), body, response.Header, err)
		}
		if response.Body.Close() != nil || request.Header.Get("Accept-Encoding") != asked {
			t.Error("the request was changed")
		}
	}
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
	compressible := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		for n := range 1_000_000 {
			if _, err := fmt.Fprintf(z, `{"metadata":{"name":"web-%d","namespace":"shop"}},`, n); err != nil {
				return
			}
		}
	}
	for name, test := range map[string]struct {
		limits Limits
		query  string
		answer http.HandlerFunc
		most   int64
		what   string
	}{
		"endless":                 {limits: Limits{Response: 4 * mib}, answer: endless, most: 4 * mib, what: "one answer"},
		"compressed":              {limits: Limits{Response: 2 * mib}, answer: compressible, most: 2 * mib, what: "one answer"},
		"compressed far too well": {answer: bomb, most: 2 * mib, what: "an answer is more than 200 times as long as its compressed form"},
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
	m := New(Limits{Response: 4 * mib, Open: 4 * mib, Burst: 64 * mib}, func(reason string) { t.Error(reason) })
	for range 10 {
		got, err := reads(t, m, "", func(w http.ResponseWriter, _ *http.Request) { send(w, 4) })
		if got != 4*mib || err != nil {
			t.Fatalf("%d bytes, %v", got, err)
		}
	}
}

// TestAnswersAreBoundedTogether: answers that are read at the same time count together, until they are closed.
func TestAnswersAreBoundedTogether(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { send(w, 5) }))
	defer server.Close()
	defer server.CloseClientConnections() // of answers that are read in part
	m := New(Limits{Response: 5 * mib, Open: 9 * mib}, func(string) {})
	client := &http.Client{Transport: m.Transport(http.DefaultTransport.(*http.Transport).Clone())}
	read := func(close bool) error {
		response, err := client.Get(server.URL)
		if err != nil {
			return err
		}
		if close {
			defer response.Body.Close()
		} else {
			t.Cleanup(func() { _ = response.Body.Close() })
		}
		_, err = io.CopyN(io.Discard, response.Body, 4*mib)
		return err
	}
	for range 5 {
		if err := read(true); err != nil {
			t.Fatal("one after the other:", err)
		}
	}
	for n, want := range []bool{true, true, false} {
		if err := read(false); (err == nil) != want {
			t.Errorf("%d at the same time: %v", n+1, err)
		}
	}
}

// TestTheRate: bytes beyond the burst are read at the rate, and whoever has more for a minute is over the limit. A pause starts the minute again.
func TestTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(Limits{Burst: 8 * mib, Rate: 2 * mib}, func(string) {})
		began := time.Now()
		read := func(megabytes int) (err error) {
			for range megabytes {
				err = errors.Join(err, m.read(mib))
			}
			return err
		}
		if err := read(8); err != nil || time.Since(began) != 0 {
			t.Errorf("the burst took %s: %v", time.Since(began), err)
		}
		if err := read(20); err != nil || time.Since(began) != 10*time.Second {
			t.Errorf("20 MiB more took %s: %v", time.Since(began), err)
		}
		time.Sleep(10 * time.Second)
		if err := read(2 * 60); err != nil {
			t.Errorf("after a pause: %v", err)
		}
		var over *ExceededError
		if err := read(20); !errors.As(err, &over) || over.Limit != 2*mib {
			t.Errorf("after more than a minute: %v", err)
		}
	})
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

// podList is a PodList of so many empty Pods, in protobuf.
func podList(pods int) []byte {
	about := append([]byte{1<<3 | 2, 2}, append([]byte("v1"), append([]byte{2<<3 | 2, 7}, "PodList"...)...)...)
	list := append([]byte("k8s\x00"), append([]byte{1<<3 | 2, byte(len(about))}, about...)...)
	list = binary.AppendUvarint(append(list, 2<<3|2), uint64(2*pods))
	return append(list, bytes.Repeat([]byte{2<<3 | 2, 0}, pods)...)
}

// answered sends a request and returns how much of its answer can be read, and how that ended.
func answered(t *testing.T, m *Meter, query, accept string, status int, contentType string, content []byte) (int64, error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{contentType}
		w.WriteHeader(status)
		_, _ = w.Write(content)
	}))
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	response, err := m.Transport(&http.Transport{}).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return io.Copy(io.Discard, response.Body)
}

const (
	protobufType = "application/vnd.kubernetes.protobuf"
	bothTypes    = protobufType + ",application/json"
)

// A list of nothing but empty objects is cut off at the limit of an answer long before it has as many bytes. What clients could take for something else
// than it is weighed for is refused, which does not count against the cluster.
func TestWhatBecomesMuchIsCutOff(t *testing.T) {
	list, text := podList(1<<20), []byte(`{"items":[`+strings.Repeat("{},", 1<<20)+`{}]}`)
	for name, c := range map[string]struct {
		status       int
		says, accept string
		content      []byte
		exceeds      bool
	}{
		"protobuf":             {200, protobufType, bothTypes, list, true},
		"protobuf for JSON":    {200, "Application/Vnd.Kubernetes.Protobuf;a=b", "application/json", list, true},
		"JSON":                 {200, "application/json", "application/json", text, true},
		"JSON as Pods":         {200, "application/json; charset=utf-8", bothTypes, text, true},
		"nothing":              {200, "", bothTypes, list, false},
		"no type":              {200, ";", bothTypes, list, false},
		"YAML":                 {200, "application/yaml", bothTypes, []byte("items:\n" + strings.Repeat("- {}\n", 1<<20)), false},
		"a page":               {200, "text/html", "application/json, */*", []byte("<html></html>"), false},
		"another kind of list": {200, protobufType, bothTypes, []byte("k8s\x00\x0a\x03\x12\x01x\x12\x00"), false},
	} {
		cutOff := 0
		n, err := answered(t, New(Limits{Response: 4 << 20}, func(string) { cutOff++ }), "", c.accept, c.status, c.says, c.content)
		if exceeded := (&ExceededError{}); err == nil || errors.As(err, &exceeded) != c.exceeds || cutOff > 0 != c.exceeds || n >= int64(len(c.content)) {
			t.Errorf("%s: %d of %d bytes were read: %v; cut off %d times", name, n, len(c.content), err, cutOff)
		}
	}
	for name, c := range map[string]struct {
		status       int
		says, accept string
		content      []byte
	}{
		"a page about an error": {502, "text/html", bothTypes, []byte("<html></html>")},
		"nobody decodes it":     {200, "application/json", "", []byte("{}")},
		"ok":                    {200, "text/plain", "application/json, */*", []byte("ok")},
		"no content":            {204, "", bothTypes, nil},
		"a short list":          {200, protobufType, bothTypes, podList(100)},
	} {
		if n, err := answered(t, New(Limits{}, func(string) { t.Error("it is cut off") }), "", c.accept, c.status, c.says, c.content); err != nil || n != int64(len(c.content)) {
			t.Errorf("%s: %d of %d bytes were read: %v", name, n, len(c.content), err)
		}
	}
}

// Of an error that nobody may decode, its status is left.
func TestErrorsThatAreRefusedAreEmpty(t *testing.T) {
	for name, c := range map[string]struct {
		says    string
		content []byte
	}{"YAML": {"application/yaml", []byte("a: b")}, "Pods": {protobufType, podList(30000)}, "no type": {"", []byte("no")}} {
		if n, err := answered(t, New(Limits{}, func(string) { t.Error("it is cut off") }), "", bothTypes, 500, c.says, c.content); err != nil || n > 0 && n == int64(len(c.content)) {
			t.Errorf("%s: %d bytes were read: %v", name, n, err)
		}
	}
}

// A watch that is not answered as one has the limits of an answer: clients read it to its end.
func TestAWatchThatIsNoneIsAnAnswer(t *testing.T) {
	_, err := answered(t, New(Limits{Response: 1 << 20}, func(string) {}), "?watch=true", bothTypes, http.StatusCreated, "application/json", bytes.Repeat([]byte(" "), 2<<20))
	if exceeded := (&ExceededError{}); !errors.As(err, &exceeded) {
		t.Errorf("it is read to its end: %v", err)
	}
}

// The pages of a list count together, for clients keep them until the last, whatever else begins meanwhile. Another list does not count.
func TestPagesCountTogether(t *testing.T) {
	m, now := New(Limits{Held: 3 << 20}, func(string) {}), time.Now()
	m.now = func() time.Time { return now }
	page := append([]byte(`{"a":"`), append(bytes.Repeat([]byte("x"), 1<<20), `"}`...)...)
	for i, query := range []string{"", "?continue=a", "?continue=b", "later", "?continue=c", "", "?continue=d", "?continue=e&labelSelector=x", "?continue=f"} {
		if query == "later" {
			now = now.Add(2 * listIdle)
			continue
		}
		_, err := answered(t, m, query, "application/json", 200, "application/json", page)
		if last := i == 8; (err != nil) != last {
			t.Errorf("page %d: %v", i, err)
		}
	}
}

// TestEachAnswerIsBoundedByItself: one that is too long ends at the limit, and the next one is read.
func TestEachAnswerIsBoundedByItself(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size := map[string]int{"/long": 3 * mib}[r.URL.Path]
		_, _ = w.Write(bytes.Repeat([]byte("a"), max(size, 1000)))
	}))
	defer server.Close()
	client := &http.Client{Transport: EachAnswer(mib)(http.DefaultTransport.(*http.Transport).Clone())}
	for _, path := range []string{"/long", "/short", "/long", "/short"} {
		response, err := client.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		var exceeded *ExceededError
		if long := path == "/long"; errors.As(err, &exceeded) != long || n > mib || !long && n != 1000 {
			t.Errorf("%s: %d bytes, %v", path, n, err)
		}
	}
}

// TestAnUnweighedAnswerCostsItsLength: until somebody decodes it, and weighs it before.
func TestAnUnweighedAnswerCostsItsLength(t *testing.T) {
	text := `{"kind":"PodList","apiVersion":"v1","items":[` + strings.Repeat("{},", 5000) + "{}]}"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/error" {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = io.WriteString(w, text)
	}))
	defer s.Close()
	limit := int64(2 * len(text))
	read := func(path string, unweighed bool) (n int, err error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "application/vnd.kubernetes.protobuf,application/json")
		response, err := New(Limits{Response: limit, Unweighed: unweighed}, func(string) {}).Over(&http.Transport{DisableCompression: true, DisableKeepAlives: true}).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		all, err := io.ReadAll(response.Body)
		return len(all), err
	}
	if n, err := read("/", false); err == nil {
		t.Errorf("%d bytes are read of what takes too much to decode", n)
	}
	if n, err := read("/", true); err != nil || n != len(text) {
		t.Errorf("unweighed: %d bytes, %v", n, err)
	}
	if n, err := read("/error", true); err == nil {
		t.Errorf("%d bytes are read of an error that takes too much to decode", n)
	}
	if cost, err := Weigh("application/json", []byte(text)); err != nil || cost <= limit {
		t.Errorf("it weighs %d, %v: want more than %d", cost, err, limit)
	}
	if _, err := Weigh("application/cbor", []byte(text)); err == nil {
		t.Error("CBOR is not refused")
	}
}
