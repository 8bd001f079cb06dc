package console

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// sessionCookie is the name of the cookie, and of its first piece. Browsers take it over TLS only, for this host only, and for all its paths.
	sessionCookie = "__Host-federation"
	// maxPiece is how much of a session a cookie has, and maxPieces how many there are at most: browsers keep 4 KiB of each.
	maxPiece, maxPieces = 3800, 4
	// maxToken bounds a bearer token, so that its session fits.
	maxToken = 10 << 10
	// maxSession is how long a session is valid at most; never longer than its token.
	maxSession = 12 * time.Hour
	// ownHeader is on all requests of the pages. No form and no link of another page can send it.
	ownHeader = "X-Federation-Console"
)

// sessions lets the pages use the API by a bearer token that scripts cannot read: it is in a sealed cookie.
type sessions struct {
	seal cipher.AEAD
	now  func() time.Time
}

// newSessions derives the key from a secret that all processes of the federation have, so that each opens what another has sealed.
func newSessions(secret []byte) (*sessions, error) {
	if len(secret) < 32 {
		return nil, fmt.Errorf("console: the secret for sessions has %d bytes, it must have at least 32", len(secret))
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "federation console session", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	seal, err := cipher.NewGCMWithRandomNonce(block)
	return &sessions{seal, time.Now}, err
}

// sealed returns a value that only processes of this federation can make and open, and only for the same purpose.
func (s *sessions) sealed(purpose string, expires time.Time, content []byte) string {
	plain := append(binary.BigEndian.AppendUint64(nil, uint64(expires.Unix())), content...)
	return base64.RawURLEncoding.EncodeToString(s.seal.Seal(nil, nil, plain, []byte(purpose)))
}

var errNoSession = errors.New("there is no session, or it has ended")

// open returns what was sealed, unless it has expired.
func (s *sessions) open(purpose, value string) (content []byte, expires time.Time, err error) {
	box, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil {
		return nil, time.Time{}, errNoSession
	}
	plain, err := s.seal.Open(nil, nil, box, []byte(purpose))
	if err != nil || len(plain) < 8 {
		return nil, time.Time{}, errNoSession
	}
	if expires = time.Unix(int64(binary.BigEndian.Uint64(plain)), 0); !s.now().Before(expires) {
		return nil, time.Time{}, errNoSession
	}
	return plain[8:], expires, nil
}

// token returns the bearer token of a request's session.
func (s *sessions) token(r *http.Request) (token string, expires time.Time, err error) {
	var value strings.Builder
	for i := range maxPieces {
		piece, err := r.Cookie(pieceName(i))
		if err != nil {
			break
		}
		value.WriteString(piece.Value)
	}
	content, expires, err := s.open(sessionCookie, value.String())
	return string(content), expires, err
}

func pieceName(i int) string {
	if i == 0 {
		return sessionCookie
	}
	return fmt.Sprintf("%s-%d", sessionCookie, i)
}

// begin sets the cookies of a new session, and removes those of an earlier, larger one.
func (s *sessions) begin(w http.ResponseWriter, token string) (expires time.Time) {
	expires = s.now().Add(maxSession)
	if end, ok := expiryOf(token); ok && end.Before(expires) {
		expires = end
	}
	value := s.sealed(sessionCookie, expires, []byte(token))
	for i := range maxPieces {
		piece := value[:min(len(value), maxPiece)]
		value = value[len(piece):]
		setCookie(w, pieceName(i), piece, http.SameSiteStrictMode, expires.Sub(s.now()))
	}
	return expires
}

// end removes the cookies.
func (s *sessions) end(w http.ResponseWriter) {
	for i := range maxPieces {
		setCookie(w, pieceName(i), "", http.SameSiteStrictMode, 0)
	}
}

// setCookie sets a cookie that no script can read; an empty value removes it.
func setCookie(w http.ResponseWriter, name, value string, sameSite http.SameSite, lasts time.Duration) {
	seconds := max(int(lasts/time.Second), 1)
	if value == "" {
		seconds = -1
	}
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: seconds, Secure: true, HttpOnly: true, SameSite: sameSite})
}

// expiryOf returns when a token ends, if it is a JWT that says so. Whether it is genuine the API decides.
func expiryOf(token string) (time.Time, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Expires json.Number `json:"exp"`
	}
	if err != nil || json.Unmarshal(payload, &claims) != nil {
		return time.Time{}, false
	}
	seconds, err := claims.Expires.Float64()
	return time.Unix(int64(seconds), 0), err == nil
}

// authorize turns the session of a request of our pages into its Authorization header. Other requests with a session are
// refused if they write, and anonymous if they read. Our cookies go no further, whatever they hold: requests may be passed on to clusters.
func (c *Console) authorize(next http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Cookie"), sessionCookie) {
			next.ServeHTTP(w, r)
			return
		}
		token, _, err := c.sessions.token(r)
		r = withoutCookies(r)
		if err == nil && r.Header.Get("Authorization") == "" {
			switch ours := c.isOurs(origin, r); {
			case ours && !writesOtherThanJSON(r):
				r.Header.Set("Authorization", "Bearer "+token)
			case ours:
				http.Error(w, "refused: what is sent must be JSON", http.StatusUnsupportedMediaType)
				return
			case !reads(r):
				http.Error(w, "refused: only the console's own pages may write with its session", http.StatusForbidden)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// isOurs reports whether a request comes from our pages.
func (c *Console) isOurs(origin *http.CrossOriginProtection, r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return r.Header.Get(ownHeader) == "1" && (site == "" || site == "same-origin") && r.Header.Get("Upgrade") == "" && c.knowsHost(r.Host) && origin.Check(r) == nil
}

func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// writesOtherThanJSON reports whether a request writes what a form could send, or what has no type.
func writesOtherThanJSON(r *http.Request) bool {
	if reads(r) || r.Method == http.MethodDelete && r.ContentLength == 0 {
		return false
	}
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	kind = strings.TrimSpace(kind)
	return kind != "application/json" && (!strings.HasPrefix(kind, "application/") || !strings.HasSuffix(kind, "+json"))
}

// withoutCookies returns the request without our cookies.
func withoutCookies(r *http.Request) *http.Request {
	r = r.Clone(r.Context())
	cookies := r.Cookies()
	r.Header.Del("Cookie")
	for _, one := range cookies {
		if !strings.HasPrefix(one.Name, sessionCookie) {
			r.AddCookie(one)
		}
	}
	return r
}

// session is what the pages learn of their session.
type session struct {
	// User is who has it; empty for nobody.
	User string `json:"user,omitempty"`
	// Expires is when it ends.
	Expires *time.Time `json:"expires,omitempty"`
	// OIDC: users can log in at an issuer.
	OIDC bool `json:"oidc"`
}

// serveSession answers for the session: GET says whether there is one, POST begins one with a token, DELETE ends it.
func (c *Console) serveSession(w http.ResponseWriter, r *http.Request, api http.Handler) {
	if !c.isOurs(http.NewCrossOriginProtection(), r) || writesOtherThanJSON(r) {
		http.Error(w, "refused: only the console's own pages may ask for this", http.StatusForbidden)
		return
	}
	is := session{OIDC: c.oidc != nil}
	switch r.Method {
	case http.MethodGet:
		if token, expires, err := c.sessions.token(r); err == nil {
			is.User, is.Expires = userOf(r, api, token), &expires
		}
	case http.MethodPost:
		var asked struct {
			Token string `json:"token"`
		}
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(issuerTimeout)) // only test writers cannot
		if err := json.NewDecoder(io.LimitReader(r.Body, 2*maxToken)).Decode(&asked); err != nil || strings.TrimSpace(asked.Token) == "" {
			http.Error(w, `the body must be {"token": "…"}`, http.StatusBadRequest)
			return
		}
		var err error
		if is, err = c.logIn(w, r, api, strings.TrimSpace(asked.Token)); err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
	case http.MethodDelete:
		c.sessions.end(w)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		http.Error(w, "only GET, POST and DELETE are allowed here", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(is) // a client that is gone needs no answer
}

// logIn begins a session with a token that the API accepts.
func (c *Console) logIn(w http.ResponseWriter, r *http.Request, api http.Handler, token string) (session, error) {
	if len(token) > maxToken {
		return session{}, fmt.Errorf("the token has %d bytes, at most %d are allowed", len(token), maxToken)
	}
	user := userOf(r, api, token)
	if user == "" {
		return session{}, errors.New("the API does not accept this token")
	}
	expires := c.sessions.begin(w, token)
	return session{User: user, Expires: &expires, OIDC: c.oidc != nil}, nil
}

// userOf asks the API whose token it is; "" if the API rejects it.
func userOf(r *http.Request, api http.Handler, token string) string {
	const path, body = "/apis/authentication.k8s.io/v1/selfsubjectreviews", `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`
	ask, err := http.NewRequestWithContext(r.Context(), http.MethodPost, path, strings.NewReader(body))
	if err != nil {
		return ""
	}
	ask.RemoteAddr, ask.Host, ask.RequestURI = r.RemoteAddr, r.Host, path
	ask.Header.Set("Authorization", "Bearer "+token)
	ask.Header.Set("Content-Type", "application/json")
	ask.Header.Set("Accept", "application/json")
	answer := &captured{header: http.Header{}}
	api.ServeHTTP(answer, ask)
	var review struct {
		Status struct {
			UserInfo struct{ Username string }
		}
	}
	if answer.code != http.StatusCreated || json.Unmarshal(answer.body.Bytes(), &review) != nil {
		return ""
	}
	return review.Status.UserInfo.Username
}

// captured keeps an answer of the API that was asked for in this process.
type captured struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (c *captured) Header() http.Header { return c.header }

func (c *captured) WriteHeader(code int) {
	if c.code == 0 {
		c.code = code
	}
}

func (c *captured) Write(p []byte) (int, error) {
	c.WriteHeader(http.StatusOK)
	return c.body.Write(p)
}

// newNonce returns 32 random bytes as text.
func newNonce() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}
