package proxy

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// fault is why a request is refused.
type fault struct {
	status int
	why    string
}

// maxURI bounds the path and query in bytes.
const maxURI = 8 << 10

// checkRequest refuses what two servers may read in two ways, beside what http1 and net/http refuse. It returns the host in lower case, without a
// port or a dot at its end.
func checkRequest(r *http.Request) (host string, f *fault) {
	bad := func(format string, args ...any) (string, *fault) {
		return "", &fault{http.StatusBadRequest, fmt.Sprintf(format, args...)}
	}
	if r.Method == http.MethodConnect || r.Method == http.MethodTrace {
		return "", &fault{http.StatusMethodNotAllowed, "method " + r.Method + ": is not passed on"}
	}
	if !httpguts.ValidHeaderFieldName(r.Method) {
		return bad("method %q: must be a token", r.Method)
	}
	for name := range r.Trailer {
		if !httpguts.ValidHeaderFieldName(name) {
			return bad("Trailer %q: must be the name of a header", name)
		}
	}
	if len(r.RequestURI) > maxURI {
		return "", &fault{http.StatusRequestURITooLong, fmt.Sprintf("the path and query have more than %d bytes", maxURI)}
	}
	for i := range len(r.RequestURI) {
		if c := r.RequestURI[i]; c <= ' ' || c >= 0x7f {
			return bad("the path and query may have printable ASCII only: others are percent-encoded")
		}
	}
	if !strings.HasPrefix(r.URL.Path, "/") || strings.ContainsRune(r.URL.Path, 0) {
		return bad("the path must begin with a slash, and have no zero byte")
	}
	for element := range strings.SplitSeq(r.URL.Path, "/") {
		if element == "." || element == ".." {
			return bad("the path has an element . or ..: clients resolve these")
		}
	}
	if r.Header["Upgrade"] != nil && (r.ProtoMajor != 1 || r.ContentLength != 0) {
		return bad("Upgrade: must be in a request of HTTP/1.1 without a body")
	}
	if named := r.Header["Host"]; len(named) > 1 || len(named) == 1 && named[0] != r.Host { // by HTTP/2, beside :authority
		return bad("Host: must be the same as :authority")
	}
	if host = hostName(r.Host); host == "" {
		return bad("Host: must be one name or address, with or without a port")
	}
	return host, nil
}

// hostName returns the name in a Host header; "" if there is none that is valid.
func hostName(text string) string {
	name := text
	if at := strings.LastIndexByte(text, ':'); at >= 0 && !strings.HasSuffix(text, "]") {
		if !isPort(text[at+1:]) {
			return ""
		}
		name = text[:at]
	}
	if inner, is := strings.CutPrefix(name, "["); is {
		inner, closed := strings.CutSuffix(inner, "]")
		a, err := netip.ParseAddr(inner)
		if !closed || err != nil || !a.Is6() || a.Zone() != "" {
			return ""
		}
		return name
	}
	name = strings.TrimSuffix(name, ".")
	if len(name) > 253 {
		return ""
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_':
		case c >= 'A' && c <= 'Z':
			return hostName(strings.ToLower(text))
		case c == '.' && i > 0 && name[i-1] != '.':
		default:
			return ""
		}
	}
	return name
}

func isPort(text string) bool {
	if len(text) > 5 {
		return false
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return true
}

// endsHere are the headers that are between two neighbours only, and those by which a client could speak in our name.
var endsHere = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Proxy-Authenticate": true, "Proxy-Authorization": true, "Te": true, "Trailer": true,
	"Transfer-Encoding": true, "Upgrade": true, "Http2-Settings": true, "Expect": true, "Content-Length": true, "Host": true,
	"Cdn-Loop": true, "Forwarded": true, "X-Forwarded-For": true, "X-Forwarded-Proto": true, "X-Forwarded-Host": true, "X-Forwarded-Port": true, "X-Real-Ip": true,
}

const (
	// loopID is how load balancers name themselves in the header CDN-Loop (RFC 8586), and loopHeader its canonical name.
	loopID, loopHeader = "federation-lb", "Cdn-Loop"
	// maxPasses is how often a request may come through load balancers of federations. An application may send a request of its own for each that it gets.
	maxPasses = 5
)

// passes returns how often a request has come through load balancers of federations.
func passes(h http.Header) (n int) {
	for _, value := range h[loopHeader] {
		for item := range strings.SplitSeq(value, ",") {
			id, _, _ := strings.Cut(item, ";")
			if strings.EqualFold(strings.TrimSpace(id), loopID) {
				n++
			}
		}
	}
	return n
}

// drops reports whether a header is not passed on: it ends here, or has an underscore, which applications read as a hyphen.
func (o *outgoing) drops(name string) bool {
	return endsHere[name] || o.dropped[name] || strings.IndexByte(name, '_') >= 0
}

// connectionHeaders returns the headers that a Connection header names; nil if there are none.
func connectionHeaders(h http.Header) (names map[string]bool) {
	for _, value := range h["Connection"] {
		for token := range strings.SplitSeq(value, ",") {
			if token = http.CanonicalHeaderKey(strings.TrimSpace(token)); token == "" || endsHere[token] || token == "Close" {
				continue
			}
			if names == nil {
				names = map[string]bool{}
			}
			names[token] = true
		}
	}
	return names
}

// upgradeOf returns the protocol that a client wants instead of HTTP; "" if none.
func upgradeOf(h http.Header) string {
	if len(h["Upgrade"]) != 1 {
		return ""
	}
	for _, value := range h["Connection"] {
		for token := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(token), "upgrade") && !strings.EqualFold(h["Upgrade"][0], "h2c") {
				return h["Upgrade"][0]
			}
		}
	}
	return ""
}
