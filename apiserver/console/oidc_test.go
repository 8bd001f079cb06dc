package console

import (
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"federation/apiserver/console/testissuer"
)

// issuedConsole is one that people log in to at the issuer.
func issuedConsole(t *testing.T, i *testissuer.Issuer) http.Handler {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(i.Certificate())
	_, h := newTestConsole(t, &OIDC{Issuer: i.URL, ClientID: "console", Scopes: []string{"groups"}, CA: pool})
	return h
}

// beginLogin begins a login: it returns the issuer's code for it, the state, and the browser's cookies.
func beginLogin(t *testing.T, i *testissuer.Issuer, h http.Handler) (code, state string, cookies []*http.Cookie) {
	t.Helper()
	answer := call(h, http.MethodGet, "/console/login", "", nil)
	to, err := url.Parse(answer.Header.Get("Location"))
	if err != nil || answer.StatusCode != http.StatusFound || to.Path != "/authorize" {
		t.Fatalf("login: %d to %q, %v", answer.StatusCode, answer.Header.Get("Location"), err)
	}
	asked := to.Query()
	for name, want := range map[string]string{"response_type": "code", "code_challenge_method": "S256", "client_id": "console", "scope": "openid groups", "redirect_uri": "https://localhost:6443/console/callback"} {
		if asked.Get(name) != want {
			t.Errorf("the issuer is asked with %s=%q, want %q", name, asked.Get(name), want)
		}
	}
	return i.Code(asked), asked.Get("state"), answer.Cookies()
}

func callback(h http.Handler, code, state string, cookies []*http.Cookie) *http.Response {
	return call(h, http.MethodGet, "/console/callback?"+url.Values{"code": {code}, "state": {state}}.Encode(), "", cookies, "Sec-Fetch-Site: cross-site")
}

// Acceptance test 11 of the console: a login at an issuer, with PKCE, gives a session with the ID token.
func TestLoginAtAnIssuer(t *testing.T) {
	i := testissuer.New(t)
	h := issuedConsole(t, i)
	code, state, cookies := beginLogin(t, i, h)
	if len(cookies) != 1 || cookies[0].SameSite != http.SameSiteLaxMode || !cookies[0].HttpOnly || !cookies[0].Secure {
		t.Errorf("cookies of the login: %v", cookies)
	}
	answer := callback(h, code, state, cookies)
	if answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != "/console/" {
		t.Fatalf("callback: %d to %q", answer.StatusCode, answer.Header.Get("Location"))
	}
	token, _ := reached(t, call(h, http.MethodGet, "/api", "", answer.Cookies(), own))
	if strings.Count(token, ".") != 2 {
		t.Errorf("the API got %q", token)
	}
	var is session
	if err := json.NewDecoder(call(h, http.MethodGet, "/console/session", "", answer.Cookies(), own).Body).Decode(&is); err != nil || is.User != "alice" || !is.OIDC || is.Expires == nil || time.Until(*is.Expires) > time.Hour {
		t.Errorf("session %+v, %v", is, err)
	}
}

// TestLoginsThatAreRefused checks all that may be wrong with a callback: nobody is logged in by it.
func TestLoginsThatAreRefused(t *testing.T) {
	i := testissuer.New(t)
	h := issuedConsole(t, i)
	_, _, others := beginLogin(t, i, h)
	for name, c := range map[string]struct {
		claims   func(map[string]any)
		callback func(code, state string, cookies []*http.Cookie) *http.Response
		says     string
	}{
		"a changed state": {nil, func(code, state string, cookies []*http.Cookie) *http.Response {
			return callback(h, code, state+"x", cookies)
		}, "another login"},
		"no cookie":               {nil, func(code, state string, _ []*http.Cookie) *http.Response { return callback(h, code, state, nil) }, "not begun in this browser"},
		"another browser's login": {nil, func(code, state string, _ []*http.Cookie) *http.Response { return callback(h, code, state, others) }, "another login"},
		"a code that is used again": {nil, func(code, state string, cookies []*http.Cookie) *http.Response {
			callback(h, code, state, cookies)
			return callback(h, code, state, cookies)
		}, "did not exchange"},
		"an unknown code": {nil, func(_, state string, cookies []*http.Cookie) *http.Response {
			return callback(h, "guessed", state, cookies)
		}, "did not exchange"},
		"an error of the issuer": {nil, func(_, state string, cookies []*http.Cookie) *http.Response {
			return call(h, http.MethodGet, "/console/callback?error=access_denied&state="+state, "", cookies)
		}, "access_denied"},
		"another audience": {func(c map[string]any) { c["aud"] = "others" }, nil, "ID token"},
		"another issuer":   {func(c map[string]any) { c["iss"] = "https://evil.test" }, nil, "ID token"},
		"another nonce":    {func(c map[string]any) { c["nonce"] = "x" }, nil, "another login"},
		"an old token":     {func(c map[string]any) { c["exp"] = time.Now().Add(-time.Hour).Unix() }, nil, "ID token"},
	} {
		i.Claims = func(map[string]any) {}
		if c.claims != nil {
			i.Claims = c.claims
		}
		if c.callback == nil {
			c.callback = func(code, state string, cookies []*http.Cookie) *http.Response {
				return callback(h, code, state, cookies)
			}
		}
		code, state, cookies := beginLogin(t, i, h)
		answer := c.callback(code, state, cookies)
		text, _ := io.ReadAll(answer.Body)
		if answer.StatusCode != http.StatusForbidden || !strings.Contains(string(text), c.says) {
			t.Errorf("%s: %d %s", name, answer.StatusCode, text)
		}
		for _, one := range answer.Cookies() {
			if one.Value != "" {
				t.Errorf("%s: sets the cookie %s", name, one.Name)
			}
		}
	}
}

func TestWithoutAnIssuerThereIsNoLoginAtOne(t *testing.T) {
	_, h := newTestConsole(t, nil)
	for _, path := range []string{"/console/login", "/console/callback?code=x"} {
		if answer := call(h, http.MethodGet, path, "", nil); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, answer.StatusCode)
		}
	}
}

// Only so many requests wait for the issuer, and one that fails is not asked again for each of them.
func TestLoginsAreBounded(t *testing.T) {
	var asked atomic.Int32
	issuer := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusTeapot)
	}))
	defer issuer.Close()
	pool := x509.NewCertPool()
	pool.AddCert(issuer.Certificate())
	c, h := newTestConsole(t, &OIDC{Issuer: issuer.URL, ClientID: "console", CA: pool})
	for range 3 {
		if answer := call(h, http.MethodGet, "/console/login", "", nil); answer.StatusCode != http.StatusBadGateway {
			t.Errorf("the issuer fails: %d", answer.StatusCode)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("it was asked %d times", asked.Load())
	}
	for range maxLogins {
		c.logins <- struct{}{}
	}
	for _, request := range []string{"GET /console/login", "GET /console/callback?code=x"} {
		method, path, _ := strings.Cut(request, " ")
		if answer := call(h, method, path, "", nil); answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" {
			t.Errorf("%s beside as many as there may be: %d", request, answer.StatusCode)
		}
	}
	if answer := call(h, http.MethodGet, "/console/", "", nil); answer.StatusCode != http.StatusOK {
		t.Errorf("pages: %d", answer.StatusCode)
	}
	<-c.logins
	if answer := call(h, http.MethodGet, "/console/callback?code=x", "", nil); answer.StatusCode != http.StatusForbidden {
		t.Errorf("once there is room: %d", answer.StatusCode)
	}
}
