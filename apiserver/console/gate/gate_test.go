package gate

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

func gateOf(t *testing.T) (g *Gate, passed *[]*http.Request) {
	t.Helper()
	passed = &[]*http.Request{}
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { *passed = append(*passed, r) })
	return &Gate{host: "127.0.0.1:4711", key: "KEY", session: "SESSION", own: "OWN", api: next, local: next}, passed
}

// TestTheGate sends what other programs, other users and other pages may have a browser send. A request is written as
// METHOD PATH, then headers as NAME: VALUE. Acceptance tests 7 and 8 of the console.
func TestTheGate(t *testing.T) {
	const cookie, own, same = "Cookie: federation-console-4711=SESSION", "X-Federation-Console: OWN", "Sec-Fetch-Site: same-origin"
	const path = "/apis/federation/v1beta1/failoverdrills"
	for name, c := range map[string]struct {
		request []string
		code    int
	}{
		"an own read":                          {[]string{"GET " + path, cookie, own, same}, 200},
		"an own write":                         {[]string{"POST " + path, cookie, own, same, "Content-Type: application/json"}, 200},
		"an own patch":                         {[]string{"PATCH " + path, cookie, own, same, "Content-Type: application/merge-patch+json"}, 200},
		"a page":                               {[]string{"GET /console/", cookie}, 200},
		"another key":                          {[]string{"GET /?key=KEZ"}, 403},
		"the cookie, as another port gets it":  {[]string{"GET " + path, cookie, "X-Federation-Console: 1", same}, 403},
		"no secret":                            {[]string{"GET " + path, own}, 403},
		"no secret, a page":                    {[]string{"GET /console/"}, 403},
		"another's secret":                     {[]string{"GET " + path, own, "Cookie: federation-console-4711=SESSIOM"}, 403},
		"the secret of another port":           {[]string{"GET " + path, own, "Cookie: federation-console-4712=SESSION"}, 403},
		"a foreign name for this address":      {[]string{"GET " + path, cookie, own, "Host: evil.example:4711"}, 403},
		"localhost, whose cookies are others":  {[]string{"GET " + path, cookie, own, "Host: localhost:4711"}, 403},
		"a link":                               {[]string{"GET " + path, cookie}, 403},
		"a form":                               {[]string{"POST " + path, cookie, "Content-Type: application/x-www-form-urlencoded", "Origin: http://evil.example"}, 403},
		"a form of a page on another port":     {[]string{"POST " + path, cookie, "Content-Type: text/plain", "Origin: http://127.0.0.1:8080", "Sec-Fetch-Site: same-site"}, 403},
		"the header, of another origin":        {[]string{"POST " + path, cookie, own, "Content-Type: application/json", "Origin: http://127.0.0.1:8080"}, 403},
		"the header, of a sibling":             {[]string{"POST " + path, cookie, own, "Content-Type: application/json", "Sec-Fetch-Site: same-site"}, 403},
		"no Sec-Fetch headers":                 {[]string{"POST " + path, cookie, "Content-Type: application/json"}, 403},
		"no content type":                      {[]string{"POST " + path, cookie, own, same}, 415},
		"text":                                 {[]string{"POST " + path, cookie, own, same, "Content-Type: text/plain"}, 415},
		"YAML":                                 {[]string{"PATCH " + path, cookie, own, same, "Content-Type: application/apply-patch+yaml"}, 415},
		"a WebSocket":                          {[]string{"GET /api/v1/namespaces/a/pods/b/exec", cookie, own, "Upgrade: websocket"}, 403},
		"an API path reached through a page's": {[]string{"GET /console/%2e%2e" + path, cookie}, 404},
		"another path":                         {[]string{"GET /metrics", cookie, own, same}, 404},
		"a delete without its header":          {[]string{"DELETE " + path + "/a", cookie}, 403},
	} {
		g, passed := gateOf(t)
		method, target, _ := strings.Cut(c.request[0], " ")
		r := httptest.NewRequest(method, target, nil)
		r.Host = g.host
		for _, header := range c.request[1:] {
			key, value, _ := strings.Cut(header, ": ")
			if r.Header.Set(key, value); key == "Host" {
				r.Host = value
			}
		}
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		if w.Code != c.code || (len(*passed) > 0) != (c.code == 200) {
			t.Errorf("%s: answers %d, want %d; passed on: %v", name, w.Code, c.code, len(*passed) > 0)
		}
	}
}

// TestTheFirstAddress checks that it gives a cookie, and a page of its own that goes on: the browser sends the cookie for no other one.
func TestTheFirstAddress(t *testing.T) {
	g, passed := gateOf(t)
	r := httptest.NewRequest(http.MethodGet, "/?key=KEY", nil)
	r.Host = g.host
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	const goesOn = `content="0;url=/console/#gate=OWN"`
	cookie := w.Header().Get("Set-Cookie")
	if w.Code != http.StatusOK || len(*passed) > 0 || !strings.Contains(w.Body.String(), goesOn) || !strings.Contains(cookie, "=SESSION; ") || !strings.Contains(cookie, "SameSite=Strict") {
		t.Errorf("it answers %d with %q: %s", w.Code, cookie, w.Body)
	}
}

// TestIdentityIsTheCredentials checks that nothing that a page sends says who asks.
func TestIdentityIsTheCredentials(t *testing.T) {
	h := http.Header{}
	for _, name := range []string{"Authorization", "Cookie", "Impersonate-User", "Impersonate-Extra-Scopes", "X-Remote-User", "X-Remote-Group", "Origin", "Referer", "Sec-Fetch-Site", consoleHeader, "Accept"} {
		h.Set(name, "x")
	}
	if dropIdentity(h); len(h) != 1 || h.Get("Accept") != "x" {
		t.Errorf("left: %v", h)
	}
}

// TestActions checks which command each action is, and what has to be typed.
func TestActions(t *testing.T) {
	for name, c := range map[string]struct {
		action  action
		command string // or the error
	}{
		"cordon":                    {action{Do: "cordon", Name: "east-a"}, "kubectl federation cordon east-a"},
		"undrain":                   {action{Do: "undrain", Name: "east-a"}, "kubectl federation undrain east-a"},
		"drain, typed":              {action{Do: "drain", Name: "east-a", Confirm: "east-a"}, "kubectl federation drain east-a"},
		"drain, typed wrong":        {action{Do: "drain", Name: "east-a", Confirm: "east-b"}, `confirm "east-b": must be east-a`},
		"what a drain would do":     {action{Do: "drain", Name: "east-a", DryRun: true}, "kubectl federation drain --dry-run east-a"},
		"a drill":                   {action{Do: "drill", Zone: "east/a", Method: "shift", Hold: "10m", Reason: "it's Tuesday", Confirm: "east/a"}, `kubectl federation drill run --zone=east/a --method=shift --hold=10m '--reason=it'\''s Tuesday' --yes --detach`},
		"a drill that is not typed": {action{Do: "drill", Zone: "east/a", Method: "shift"}, `confirm "": must be east/a`},
		"a flag for a name":         {action{Do: "cordon", Name: "--kubeconfig=/etc/passwd"}, `name "--kubeconfig=/etc/passwd": must not begin with -`},
		"an abort":                  {action{Do: "abort", Name: "weekly"}, "kubectl federation drill abort weekly"},
		"an abort of nothing":       {action{Do: "abort"}, `name "": must be that of the cluster or drill`},
		"something else":            {action{Do: "unjoin", Name: "east-a"}, `do "unjoin": must be cordon, uncordon, drain, undrain, drill or abort`},
	} {
		args, err := c.action.arguments()
		got := shellCommand(args)
		if err != nil {
			got = err.Error()
		}
		if got != c.command {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.command)
		}
	}
}

// TestRunsAreBounded checks that finished runs make room for new ones, and running ones do not, except for an abort.
func TestRunsAreBounded(t *testing.T) {
	runs := &runs{}
	fill := func(do action) (n int) {
		for runs.add(&commandRun{}, do.mostUnderWay()) {
			n++
		}
		return n
	}
	for _, do := range []action{{Do: "drain", DryRun: true}, {Do: "drain"}, {Do: "abort"}} {
		if n := fill(do); n != maxRuns {
			t.Errorf("%+v: %d more run at once, want %d", do, n, maxRuns)
		}
	}
	runs.runs = runs.runs[:maxRuns]
	runs.runs[3].Ended = &runs.runs[3].Began
	if !runs.add(&commandRun{}, maxRuns) || len(runs.list()) != maxRuns || slices.ContainsFunc(runs.list(), func(r commandRun) bool { return r.ID == 4 }) {
		t.Error("the one that has ended does not make room")
	}
	out := runOutput{runs, runs.runs[0]}
	for range 3 {
		_, _ = out.Write([]byte(strings.Repeat("x", maxRunOutput)))
	}
	if n := len(runs.list()[0].Output); n != maxRunOutput {
		t.Errorf("%d bytes of output are kept", n)
	}
}
