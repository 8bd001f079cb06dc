package console

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

var testSecret = []byte("a secret of more than thirty-two bytes")

// fakeAPI answers as the API does: it knows the token "good" and long ones, and echoes what reached it.
func fakeAPI(w http.ResponseWriter, r *http.Request) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case r.URL.Path == "/apis/authentication.k8s.io/v1/selfsubjectreviews" && (token == "good" || len(token) > 1000 || strings.Count(token, ".") == 2):
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"status":{"userInfo":{"username":"alice"}}}`)
	case r.URL.Path == "/apis/authentication.k8s.io/v1/selfsubjectreviews":
		w.WriteHeader(http.StatusUnauthorized)
	default:
		_ = json.NewEncoder(w).Encode(map[string]string{"token": token, "cookie": r.Header.Get("Cookie")})
	}
}

func newTestConsole(t *testing.T, o *OIDC) (*Console, http.Handler) {
	t.Helper()
	c, err := New([]string{"localhost"}, testSecret, o)
	if err != nil {
		t.Fatal(err)
	}
	return c, c.Before(http.HandlerFunc(fakeAPI))
}

// call sends a request with headers and cookies, and returns the answer.
func call(h http.Handler, method, target, body string, cookies []*http.Cookie, headers ...string) *http.Response {
	r := httptest.NewRequest(method, "https://localhost:6443"+target, strings.NewReader(body))
	for _, header := range headers {
		key, value, _ := strings.Cut(header, ": ")
		r.Header.Set(key, value)
	}
	for _, one := range cookies {
		if one.MaxAge >= 0 {
			r.AddCookie(one)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

const own, asJSON = "X-Federation-Console: 1", "Content-Type: application/json"

func logIn(t *testing.T, h http.Handler, token string) []*http.Cookie {
	t.Helper()
	answer := call(h, http.MethodPost, "/console/session", fmt.Sprintf(`{"token": %q}`, token), nil, own, asJSON)
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		t.Fatalf("login: %d %s", answer.StatusCode, text)
	}
	return answer.Cookies()
}

// reached returns what reached the API.
func reached(t *testing.T, answer *http.Response) (token, cookie string) {
	t.Helper()
	var got map[string]string
	if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
		t.Fatalf("%d: %v", answer.StatusCode, err)
	}
	return got["token"], got["cookie"]
}

// TestASessionIsATokenThatNoScriptCanRead checks what browsers keep, and that the API gets the token and never the cookie.
func TestASessionIsATokenThatNoScriptCanRead(t *testing.T) {
	_, h := newTestConsole(t, nil)
	for _, token := range []string{"good", strings.Repeat("x", 9000)} {
		cookies := logIn(t, h, token)
		for _, one := range cookies {
			if !one.HttpOnly || !one.Secure || one.SameSite != http.SameSiteStrictMode || one.Path != "/" || one.Domain != "" || len(one.Name)+len(one.Value) > 4000 {
				t.Errorf("cookie %s: %+v", one.Name, one)
			}
			if strings.Contains(one.Value, token) {
				t.Error("the cookie shows the token")
			}
		}
		got, cookie := reached(t, call(h, http.MethodGet, "/api/v1/pods", "", append(cookies, &http.Cookie{Name: "other", Value: "stays"}), own))
		if got != token || cookie != "other=stays" {
			t.Errorf("the API got %.20q and cookies %q", got, cookie)
		}
	}
}

// Acceptance test 7 of the console: what another page has a browser send does not get the session, and the API gets no cookie of ours.
func TestForgedRequestsHaveNoSession(t *testing.T) {
	_, h := newTestConsole(t, nil)
	cookies := logIn(t, h, "good")
	for name, c := range map[string]struct {
		method  string
		headers []string
	}{
		"a link":                       {http.MethodGet, nil},
		"an image":                     {http.MethodGet, []string{"Sec-Fetch-Site: cross-site"}},
		"a form":                       {http.MethodPost, []string{"Content-Type: application/x-www-form-urlencoded", "Origin: https://evil.test"}},
		"a form of text":               {http.MethodPost, []string{"Content-Type: text/plain"}},
		"no type":                      {http.MethodPost, nil},
		"our header and a form's type": {http.MethodPost, []string{own, "Content-Type: text/plain"}},
		"our header without a type":    {http.MethodPost, []string{own}},
		"another origin":               {http.MethodPost, []string{own, asJSON, "Origin: https://evil.test"}},
		"a sibling":                    {http.MethodPost, []string{own, asJSON, "Sec-Fetch-Site: same-site", "Origin: https://other.localhost:6443"}},
		"a sibling reads":              {http.MethodGet, []string{own, "Sec-Fetch-Site: same-site"}},
		"another port":                 {http.MethodPut, []string{own, asJSON, "Origin: https://localhost:8443"}},
		"an upgrade":                   {http.MethodGet, []string{own, "Upgrade: websocket", "Connection: Upgrade"}},
		"a deletion with a body":       {http.MethodDelete, []string{own, "Content-Type: text/plain"}},
	} {
		body := ""
		if c.method != http.MethodGet {
			body = "{}"
		}
		answer := call(h, c.method, "/api/v1/pods", body, cookies, c.headers...)
		if writes := c.method != http.MethodGet; writes && (answer.StatusCode == http.StatusForbidden || answer.StatusCode == http.StatusUnsupportedMediaType) {
			continue
		} else if writes {
			t.Errorf("%s: %s", name, answer.Status)
		}
		token, cookie := reached(t, answer)
		if token != "" || cookie != "" {
			t.Errorf("%s: the API got the token %q and the cookie %q", name, token, cookie)
		}
	}
	for name, headers := range map[string][]string{"no header": {asJSON}, "another origin": {own, asJSON, "Origin: https://evil.test"}, "a form": {own, "Content-Type: text/plain"}} {
		if answer := call(h, http.MethodPost, "/console/session", `{"token": "good"}`, nil, headers...); answer.StatusCode != http.StatusForbidden || len(answer.Cookies()) > 0 {
			t.Errorf("login with %s: %d", name, answer.StatusCode)
		}
	}
}

// Acceptance test 10 of the console: a session ends with its token, after twelve hours, or by logout; another process knows it.
func TestASessionEnds(t *testing.T) {
	c, h := newTestConsole(t, nil)
	begun := time.Unix(1_800_000_000, 0)
	now := begun
	c.sessions.now = func() time.Time { return now }
	other, otherHandler := newTestConsole(t, nil)
	other.sessions.now = c.sessions.now
	jwt := "e30." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp": %d}`, begun.Add(time.Hour).Unix())) + ".x"
	for token, lasts := range map[string]time.Duration{"good": 12 * time.Hour, jwt: time.Hour, "a.b.c": 12 * time.Hour} {
		now = begun
		cookies := logIn(t, h, token)
		for _, at := range []time.Duration{0, lasts - time.Second, lasts} {
			now = begun.Add(at)
			got, _ := reached(t, call(otherHandler, http.MethodGet, "/api", "", cookies, own))
			if want := at < lasts; (got == token) != want {
				t.Errorf("%s: after %s the session is there: %t, want %t", token, at, got == token, want)
			}
		}
	}
	now = begun
	cookies := logIn(t, h, "good")
	answer := call(h, http.MethodDelete, "/console/session", "", cookies, own)
	for _, one := range answer.Cookies() {
		if one.Value != "" || one.MaxAge >= 0 {
			t.Errorf("after logout there is %+v", one)
		}
	}
}

func TestSessionsAreOfOneFederation(t *testing.T) {
	_, h := newTestConsole(t, nil)
	cookies := logIn(t, h, "good")
	foreign, err := New([]string{"localhost"}, []byte("another secret of more than 32 bytes."), nil)
	if err != nil {
		t.Fatal(err)
	}
	if token, _ := reached(t, call(foreign.Before(http.HandlerFunc(fakeAPI)), http.MethodGet, "/api", "", cookies, own)); token != "" {
		t.Error("another federation opens the session")
	}
	changed := *cookies[0]
	changed.Value = "A" + changed.Value[1:]
	if token, _ := reached(t, call(h, http.MethodGet, "/api", "", []*http.Cookie{&changed}, own)); token != "" {
		t.Error("a changed cookie is a session")
	}
	if _, err := New(nil, []byte("short"), nil); err == nil {
		t.Error("a short secret is taken")
	}
}

func TestLoginRefusesWhatIsNoToken(t *testing.T) {
	_, h := newTestConsole(t, nil)
	for body, want := range map[string]int{`{"token": "bad"}`: 401, `{"token": " "}`: 400, `{}`: 400, `x`: 400, `{"token": "` + strings.Repeat("x", maxToken+1) + `"}`: 401, `{"token": "` + strings.Repeat("x", 3*maxToken) + `"}`: 400} {
		if answer := call(h, http.MethodPost, "/console/session", body, nil, own, asJSON); answer.StatusCode != want || len(answer.Cookies()) > 0 {
			t.Errorf("%.30s: %d, want %d", body, answer.StatusCode, want)
		}
	}
	if answer := call(h, http.MethodPut, "/console/session", "{}", nil, own, asJSON); answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("PUT: %d", answer.StatusCode)
	}
}

// FuzzCookies checks that whatever a client sends as a session is none.
func FuzzCookies(f *testing.F) {
	f.Add("", "")
	f.Add("AAAA", strings.Repeat("B", 4000))
	c, err := New([]string{"localhost"}, testSecret, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		r := httptest.NewRequest(http.MethodGet, "https://localhost/api", nil)
		r.AddCookie(&http.Cookie{Name: pieceName(0), Value: first})
		r.AddCookie(&http.Cookie{Name: pieceName(1), Value: second})
		if token, _, err := c.sessions.token(r); err == nil {
			t.Errorf("%q and %q are a session with the token %q", first, second, token)
		}
	})
}
