package console

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func ask(t *testing.T, h http.Handler, method, target string, headers ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	for _, header := range headers {
		key, value, _ := strings.Cut(header, ": ")
		r.Header.Set(key, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// TestFiles checks who gets which file, with which headers: a request for a host that is none of the server's gets none. Acceptance test 8 of the console.
func TestFiles(t *testing.T) {
	c, err := New([]string{"localhost", "10.0.0.1", "::1", "*.example.com"}, testSecret, nil)
	if err != nil {
		t.Fatal(err)
	}
	teapot := c.Before(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	for name, want := range map[string]int{
		"GET https://localhost:6443/console/":                    200,
		"HEAD https://10.0.0.1/console/main.js":                  200,
		"GET https://[::1]:6443/console/vendor/lit-html/LICENSE": 200,
		"GET https://fed.example.com/console/":                   200,
		"GET https://LOCALHOST/console/":                         200,
		"GET https://localhost/console":                          308,
		"GET https://localhost/console/views/":                   404,
		"GET https://localhost/console/../console.go":            404,
		"GET https://localhost/console/nothing.js":               404,
		"POST https://localhost/console/":                        405,
		"GET https://evil.test/console/":                         403,
		"GET https://a.fed.example.com/console/":                 403,
		"GET https://example.com/console/":                       403,
		"GET https://localhost/consoles":                         418,
		"GET https://evil.test/apis/federation/v1beta1/clusters": 418,
	} {
		method, target, _ := strings.Cut(name, " ")
		answer := ask(t, teapot, method, target)
		if answer.StatusCode != want {
			t.Errorf("%s: %d, want %d", name, answer.StatusCode, want)
		}
		if want == 418 {
			continue
		}
		for header, part := range map[string]string{"Content-Security-Policy": "require-trusted-types-for 'script'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin"} {
			if !strings.Contains(answer.Header.Get(header), part) {
				t.Errorf("%s: %s: %q lacks %q", name, header, answer.Header.Get(header), part)
			}
		}
	}
}

// TestNothingIsSentTwice checks that a file is sent compressed, and again only if it has changed.
func TestNothingIsSentTwice(t *testing.T) {
	c, err := New([]string{"example.com"}, testSecret, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := c.Before(http.NotFoundHandler())
	plain := ask(t, h, "GET", "https://example.com/console/style.css")
	packed := ask(t, h, "GET", "https://example.com/console/style.css", "Accept-Encoding: gzip, br")
	unpack, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	a, err1 := io.ReadAll(plain.Body)
	b, err2 := io.ReadAll(unpack)
	if err1 != nil || err2 != nil || len(a) == 0 || string(a) != string(b) {
		t.Errorf("%d bytes plain, %d unpacked; %v, %v", len(a), len(b), err1, err2)
	}
	if one, two := plain.Header.Get("ETag"), packed.Header.Get("ETag"); one == "" || one == two {
		t.Errorf("ETags %q and %q", one, two)
	}
	again := ask(t, h, "GET", "https://example.com/console/style.css", "Accept-Encoding: gzip", "If-None-Match: "+packed.Header.Get("ETag"))
	if again.StatusCode != http.StatusNotModified {
		t.Errorf("the same again: %s", again.Status)
	}
}

// TestForeignPages checks that the API takes no write and no upgrade that a page of another origin asks for. Acceptance test 7 of the console.
func TestForeignPages(t *testing.T) {
	h := RefuseForeign(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for name, c := range map[string]struct {
		method  string
		headers []string
		want    int
	}{
		"kubectl":                        {"POST", nil, 200},
		"a read":                         {"GET", []string{"Origin: https://evil.test", "Sec-Fetch-Site: cross-site"}, 200},
		"a write of another origin":      {"POST", []string{"Origin: https://evil.test", "Sec-Fetch-Site: cross-site"}, 403},
		"a write of a sibling":           {"PATCH", []string{"Origin: https://other.example.com", "Sec-Fetch-Site: same-site"}, 403},
		"a write, by Origin alone":       {"DELETE", []string{"Origin: https://evil.test"}, 403},
		"an own write":                   {"POST", []string{"Origin: https://example.com", "Sec-Fetch-Site: same-origin"}, 200},
		"another origin, with its token": {"POST", []string{"Origin: https://dashboard.test", "Sec-Fetch-Site: cross-site", "Authorization: Bearer x"}, 200},
		"a WebSocket of another origin":  {"GET", []string{"Upgrade: websocket", "Origin: https://evil.test"}, 403},
		"a WebSocket of kubectl":         {"GET", []string{"Upgrade: websocket"}, 200},
	} {
		if answer := ask(t, h, c.method, "https://example.com/api/v1/namespaces", c.headers...); answer.StatusCode != c.want {
			t.Errorf("%s: %d, want %d", name, answer.StatusCode, c.want)
		}
	}
}
