package http1

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Fault is why a request is refused. Nothing that follows it on its connection is read.
type Fault struct {
	// Status is that of the answer.
	Status int
	// Why is the text of the answer.
	Why string
}

// Error implements error.
func (f *Fault) Error() string { return f.Why }

func badRequest(format string, args ...any) *Fault {
	return &Fault{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// framing is what a head says about where its request ends. The headers themselves are not kept.
type framing struct {
	hosts, lengths, codings int
	length, coding          string
}

// parseHead fills in a request from its head: lines that end by CRLF, without the empty one. Header and URL are empty, and are filled, too.
func parseHead(text string, r *http.Request) *Fault {
	line, fields, _ := strings.Cut(text, "\r\n")
	if fault := parseRequestLine(line, r); fault != nil {
		return fault
	}
	var f framing
	if fault := f.parseFields(fields, r); fault != nil {
		return fault
	}
	if f.hosts > 1 || f.hosts == 0 && r.ProtoMinor == 1 {
		return badRequest("Host: must be there once")
	}
	if r.URL.Host != "" {
		r.Host = r.URL.Host
	}
	if fault := f.apply(r); fault != nil {
		return fault
	}
	if fault := announceTrailers(r); fault != nil {
		return fault
	}
	r.Close = httpguts.HeaderValuesContainsToken(r.Header["Connection"], "close") ||
		r.ProtoMinor == 0 && !httpguts.HeaderValuesContainsToken(r.Header["Connection"], "keep-alive")
	return nil
}

func parseRequestLine(line string, r *http.Request) *Fault {
	method, rest, _ := strings.Cut(line, " ")
	target, version, _ := strings.Cut(rest, " ")
	if r.Proto = version; version != "HTTP/1.1" && version != "HTTP/1.0" {
		if len(version) == len("HTTP/1.1") && strings.HasPrefix(version, "HTTP/") && isDigits(version[5:6]) && version[6] == '.' && isDigits(version[7:]) {
			return &Fault{http.StatusHTTPVersionNotSupported, "the version must be HTTP/1.1 or HTTP/1.0, or HTTP/2 from the first byte of a connection"}
		}
		return badRequest("the first line must be METHOD TARGET HTTP/1.1")
	}
	r.ProtoMajor, r.ProtoMinor = 1, int(version[7]-'0')
	if !httpguts.ValidHeaderFieldName(method) {
		return badRequest("the method must be a token")
	}
	r.Method, r.RequestURI = method, target
	if method == http.MethodConnect {
		r.URL = &url.URL{Host: target} // who asks for a tunnel names its end
		return nil
	}
	for i := range len(target) {
		if target[i] <= ' ' || target[i] >= 0x7f {
			return badRequest("the path and query may have printable ASCII only: others are percent-encoded")
		}
	}
	if isPlainPath(target, r.URL) {
		return nil
	}
	u, err := url.ParseRequestURI(target)
	if err != nil || u.User != nil {
		return badRequest("the path and query are not valid, or name a user")
	}
	r.URL = u
	return nil
}

// isPlainPath reports whether a target is an absolute path, with or without a query, of which nothing is to be decoded, and fills in its URL, as
// url.ParseRequestURI would.
func isPlainPath(target string, u *url.URL) bool {
	path, query, has := strings.Cut(target, "?")
	if path == "" || path[0] != '/' || has && query == "" {
		return false
	}
	for i := range len(path) {
		switch c := path[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '/', c == '-', c == '.', c == '_', c == '~':
		default:
			return false
		}
	}
	u.Path, u.RawQuery = path, query
	return true
}

// parseFields parses the lines behind the first one.
func (f *framing) parseFields(text string, r *http.Request) *Fault {
	return ParseFields(text, r.Header, func(name, value string) bool {
		switch name {
		case "Host":
			f.hosts, r.Host = f.hosts+1, value
		case "Content-Length":
			f.lengths, f.length = f.lengths+1, value
		case "Transfer-Encoding":
			f.codings, f.coding = f.codings+1, value
		default:
			return false
		}
		return true
	})
}

// ParseFields adds the fields of a head to header, by their canonical names, except those that takes keeps for itself. Each line ends by CRLF.
func ParseFields(text string, header http.Header, takes func(name, value string) bool) *Fault {
	values := make([]string, 0, strings.Count(text, "\r\n"))
	for text != "" {
		var line string
		line, text, _ = strings.Cut(text, "\r\n")
		name, value, is := strings.Cut(line, ":")
		if !is || !httpguts.ValidHeaderFieldName(name) {
			return badRequest("each header must be NAME: VALUE in a line of its own, with a token for its name")
		}
		if value = strings.Trim(value, " \t"); !httpguts.ValidHeaderFieldValue(value) {
			return badRequest("header %.64s: its value has control characters", name)
		}
		name = http.CanonicalHeaderKey(name)
		if takes(name, value) {
			continue
		}
		if others := header[name]; others != nil {
			header[name] = append(others, value)
			continue
		}
		values = append(values, value) // each header's values are a part of one slice, with room for no others
		n := len(values)
		header[name] = values[n-1 : n : n]
	}
	return nil
}

// apply decides where the request ends: RFC 9112, section 6.3, without what it merely tolerates.
func (f *framing) apply(r *http.Request) *Fault {
	switch {
	case f.codings > 0 && f.lengths > 0:
		return badRequest("Transfer-Encoding and Content-Length: must be one of them")
	case f.codings > 0 && r.ProtoMinor == 0:
		return badRequest("HTTP/1.0 has no Transfer-Encoding")
	case f.codings > 1 || f.codings == 1 && !strings.EqualFold(f.coding, "chunked"):
		return &Fault{http.StatusNotImplemented, "Transfer-Encoding: must be chunked"}
	case f.codings == 1:
		r.ContentLength, r.TransferEncoding = -1, []string{"chunked"}
		return nil
	case f.lengths == 0:
		return nil
	case f.lengths > 1 || !isDigits(f.length) || len(f.length) > maxDigits:
		return badRequest("Content-Length: must be one number")
	}
	r.ContentLength, _ = strconv.ParseInt(f.length, 10, 64) // of digits that fit
	return nil
}

// maxDigits of a length, so that it fits into an int64.
const maxDigits = 18

func isDigits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text != ""
}

// announceTrailers moves the names in Trailer to where their values will be.
func announceTrailers(r *http.Request) *Fault {
	announced := r.Header["Trailer"]
	if announced == nil {
		return nil
	}
	delete(r.Header, "Trailer")
	if r.ContentLength >= 0 {
		return nil // only behind chunks is there room for them
	}
	r.Trailer = http.Header{}
	for _, value := range announced {
		for name := range strings.SplitSeq(value, ",") {
			name = strings.TrimSpace(name)
			if !httpguts.ValidTrailerHeader(http.CanonicalHeaderKey(name)) || !httpguts.ValidHeaderFieldName(name) {
				return badRequest("Trailer: must name headers that may come behind a body")
			}
			r.Trailer[http.CanonicalHeaderKey(name)] = nil
		}
	}
	return nil
}

// parseTrailers fills in the announced trailers; others are left out.
func parseTrailers(text string, trailer http.Header) *Fault {
	var f framing
	r := &http.Request{Header: http.Header{}}
	if fault := f.parseFields(text, r); fault != nil {
		return fault
	}
	for name := range trailer {
		if values := r.Header[name]; values != nil {
			trailer[name] = values
		}
	}
	return nil
}
