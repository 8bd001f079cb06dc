// Package console serves the console: web pages that show the federation and read its API, each with the rights of the
// user who looks. The files need no user and hold no data, so they are answered in front of the API's handler chain.
package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"path"
	"strings"
)

//go:embed web
var web embed.FS

// Prefix is the path below which the console is.
const Prefix = "/console"

// policy lets pages load what is served here and nothing else, and lets no string become markup or a script: only
// lit-html's templates, which are constants, pass its Trusted Types policy.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; " +
	"form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types lit-html"

// types are the content types of the files, by extension; a file of another kind is not served.
var types = map[string]string{
	"":      "text/plain; charset=utf-8", // a licence
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
}

// file is one file, ready to be sent.
type file struct {
	contentType, etag   string
	content, compressed []byte
}

// Console has the files of the console, and its sessions.
type Console struct {
	files    map[string]file
	hosts    []string
	sessions *sessions
	oidc     *login        // nil: nobody logs in at an issuer
	logins   chan struct{} // has those that are being answered
}

// New prepares the console for a server that is reached by hosts: host names, of which the first label may be *, and IP
// addresses. Requests for other hosts are refused, so that no foreign name can be pointed at the server. secret, at least 32 bytes,
// is what all servers of a federation have and nobody else: sessions are sealed with a key from it. o may be nil.
func New(hosts []string, secret []byte, o *OIDC) (*Console, error) {
	sealing, err := newSessions(secret)
	if err != nil {
		return nil, err
	}
	c := &Console{files: map[string]file{}, hosts: hosts, sessions: sealing, logins: make(chan struct{}, maxLogins)}
	if o != nil {
		c.oidc = newLogin(*o)
	}
	err = fs.WalkDir(web, "web", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || types[path.Ext(name)] == "" {
			return err
		}
		content, err := web.ReadFile(name)
		if err != nil {
			return err
		}
		f, err := compressFile(name, content)
		c.files[strings.TrimPrefix(name, "web")] = f
		return err
	})
	c.files["/"] = c.files["/index.html"]
	return c, err
}

// compressFile compresses a file once, for all requests.
func compressFile(name string, content []byte) (file, error) {
	var compressed bytes.Buffer
	w, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		return file{}, err
	}
	if _, err := w.Write(content); err != nil {
		return file{}, err
	}
	if err := w.Close(); err != nil {
		return file{}, fmt.Errorf("compress %s: %w", name, err)
	}
	sum := sha256.Sum256(content)
	return file{types[path.Ext(name)], base64.RawURLEncoding.EncodeToString(sum[:18]), content, compressed.Bytes()}, nil
}

// Before answers the requests for the console, and gives all others to the API, with the credential of their session.
func (c *Console) Before(api http.Handler) http.Handler {
	authorized := c.authorize(api)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, below := strings.CutPrefix(r.URL.Path, Prefix)
		if !below || name != "" && name[0] != '/' {
			authorized.ServeHTTP(w, r)
			return
		}
		c.serve(w, r, name, api)
	})
}

func (c *Console) serve(w http.ResponseWriter, r *http.Request, name string, api http.Handler) {
	setHeaders(w.Header())
	f, found := c.files[name]
	switch {
	case !c.knowsHost(r.Host):
		http.Error(w, fmt.Sprintf("host %q is none of this server's names (--tls-san adds one)", r.Host), http.StatusForbidden)
	case name == "/session":
		c.serveSession(w, r, api)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD are allowed here", http.StatusMethodNotAllowed)
	case name == "/login" && c.oidc != nil:
		c.inTurn(w, func() { c.serveLogin(w, r) })
	case name == "/callback" && c.oidc != nil:
		c.inTurn(w, func() { c.serveCallback(w, r, api) })
	case name == "":
		http.Redirect(w, r, Prefix+"/", http.StatusPermanentRedirect)
	case !found:
		http.Error(w, "there is no such file", http.StatusNotFound)
	default:
		f.send(w, r)
	}
}

// maxLogins is how many requests at a time may wait for the issuer.
const maxLogins = 32

// inTurn answers a request that waits for the issuer. If too many do, it has the sender, whom nobody knows yet, try again.
func (c *Console) inTurn(w http.ResponseWriter, answer func()) {
	select {
	case c.logins <- struct{}{}:
		defer func() { <-c.logins }()
		answer()
	default:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many logins at the same time: try again", http.StatusServiceUnavailable)
	}
}

func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("X-Frame-Options", "DENY") // for browsers that do not know frame-ancestors
	h.Set("Cache-Control", "no-cache")
}

func (f *file) send(w http.ResponseWriter, r *http.Request) {
	h, content, etag := w.Header(), f.content, `"`+f.etag+`"`
	h.Set("Content-Type", f.contentType)
	h.Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		content, etag = f.compressed, `"`+f.etag+`-gzip"`
	}
	h.Set("ETag", etag)
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", fmt.Sprint(len(content)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(content) // a client that is gone needs no answer
	}
}

// knowsHost reports whether a request's Host is one of the server's names.
func (c *Console) knowsHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	for _, known := range c.hosts {
		rest, wild := strings.CutPrefix(known, "*.")
		if _, parent, deeper := strings.Cut(host, "."); host == strings.ToLower(known) || wild && deeper && parent == strings.ToLower(rest) {
			return true
		}
	}
	return false
}
