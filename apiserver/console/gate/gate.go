// Package gate lets one user's browser on this machine at the console of a federation: it passes the console's requests to the API, with that
// user's credential, and answers beside it what only the user's own commands can say (ADR 146). It runs within "kubectl federation console".
package gate

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
)

// Gate lets one user's browser at the federation in that user's name. Everybody on the machine can connect to it, and
// every page that the browser shows can have it send requests here, so a request must be for this address, bear the
// secret, and come from the console's own pages.
type Gate struct {
	// host is the address that it listens at.
	host string
	// key is the secret of the first address, session that of the cookie, and own that of the header: a browser sends the cookie to whoever
	// listens at another port of this host, too.
	key, session, own string
	// api passes requests on to the federation; local answers the others.
	api, local http.Handler
}

// Options are what a Gate needs; all are required.
type Options struct {
	// API is how to reach the federation.
	API *rest.Config
	// Namespace is the one that pages begin with, and Version that of the program.
	Namespace, Version string
	// Run runs one of the plugin's commands.
	Run func(ctx context.Context, out, errOut io.Writer, args []string) error
}

// New returns the Gate at an address, HOST:PORT. What was begun there ends with ctx.
func New(ctx context.Context, host string, o Options) (*Gate, error) {
	api, err := newAPIProxy(o.API)
	if err != nil {
		return nil, err
	}
	local := &answers{Options: o, runs: &runs{ctx: ctx}}
	return &Gate{host: host, key: rand.Text(), session: rand.Text(), own: rand.Text(), api: api, local: local.handler()}, nil
}

// consoleHeader is what the console's pages send with each request, here with a secret: a page of another origin cannot, and neither can a
// link or a WebSocket.
const consoleHeader = "X-Federation-Console"

// Address returns the first address, with the secret.
func (g *Gate) Address() string { return "http://" + g.host + "/?key=" + g.key }

// cookie returns the cookie's name: cookies are for all ports of a host.
func (g *Gate) cookie() string {
	_, port, _ := strings.Cut(g.host, ":")
	return "federation-console-" + port
}

func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Referrer-Policy", "no-referrer")
	if r.Host != g.host {
		writeRefusal(w, http.StatusForbidden, fmt.Sprintf("this is %s, not %q", g.host, r.Host))
		return
	}
	if key := r.URL.Query().Get("key"); r.URL.Path == "/" && equalSecrets(key, g.key) {
		g.letIn(w)
		return
	}
	if c, err := r.Cookie(g.cookie()); err != nil || !equalSecrets(c.Value, g.session) {
		writeRefusal(w, http.StatusForbidden, "open the address that kubectl federation console has printed: it has a secret that this request lacks")
		return
	}
	path := r.URL.Path
	if slices.Contains(strings.Split(path, "/"), "..") { // what is between here and the API may resolve it
		writeRefusal(w, http.StatusNotFound, "there is nothing here")
		return
	}
	if path == "/" {
		http.Redirect(w, r, "/console/", http.StatusSeeOther)
		return
	}
	if path == "/console" || strings.HasPrefix(path, "/console/") {
		g.api.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'") // nothing else is a page, whatever members answer
	switch {
	case !g.ownRequest(w, r):
		// it has been refused
	case strings.HasPrefix(path, "/local/"):
		g.local.ServeHTTP(w, r)
	case path == "/version" || strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/apis/"):
		g.api.ServeHTTP(w, r)
	default:
		writeRefusal(w, http.StatusNotFound, "there is nothing here")
	}
}

// letIn answers the first address with the cookie, and with a page that goes on to the console by itself. A redirect would not do: it belongs to
// whatever page opened the address, here a file, and a browser does not send the cookie on another one's behalf.
func (g *Gate) letIn(w http.ResponseWriter) {
	http.SetCookie(w, &http.Cookie{Name: g.cookie(), Value: g.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; img-src 'self'; frame-ancestors 'none'")
	_, _ = io.WriteString(w, `<!doctype html><title>Federation</title><link rel="icon" href="/console/icon.svg"><meta http-equiv="refresh" content="0;url=/console/#gate=`+g.own+`">`) // a browser that is gone needs none
}

var sameOrigin = http.NewCrossOriginProtection()

// ownRequest reports whether a request is one of the console's own pages, and answers it if it is not.
func (g *Gate) ownRequest(w http.ResponseWriter, r *http.Request) bool {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case !equalSecrets(r.Header.Get(consoleHeader), g.own) || r.Header.Get("Upgrade") != "" || sameOrigin.Check(r) != nil:
		writeRefusal(w, http.StatusForbidden, "this request is not one of the console's pages")
	case !reads && !isJSON(r.Header.Get("Content-Type")):
		writeRefusal(w, http.StatusUnsupportedMediaType, "what is sent must be JSON")
	default:
		return true
	}
	return false
}

func isJSON(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == "application/json" || strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json"))
}

func equalSecrets(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// writeRefusal answers with a message, in the form in which the API does.
func writeRefusal(w http.ResponseWriter, code int, message string) {
	answerJSON(w, code, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message})
}

func answerJSON(w http.ResponseWriter, code int, what any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(what) // a client that is gone needs no answer
}
