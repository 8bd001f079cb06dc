package powerdns

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"federation/dnsprovider"
	"federation/dnsprovider/batch"
)

// Options say where the API is, and how it knows us.
type Options struct {
	// URL is the address of the server's web server, as https://192.0.2.53:8081.
	URL string
	// Server is the server's name in the API. Default: localhost, which is what PowerDNS itself is.
	Server string
	// Key returns the API key. It is called for each request, so that a new one is used without a restart.
	Key func() (string, error)
	// Transport carries the requests, and decides which certificates to trust. Default: http.DefaultTransport.
	Transport http.RoundTripper
}

const (
	// maxPatch is how many bytes of JSON a PATCH has at most; the server takes 2 MiB by default.
	maxPatch = 1 << 20
	// requestTimeout bounds a request whose context has no earlier deadline.
	requestTimeout = 60 * time.Second
)

// New makes a provider; it does not speak to the server yet. It fails when the URL is none, or the key
// cannot be read.
func New(o Options) (*batch.Provider, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("URL %q: must be http://HOST:PORT or https://HOST:PORT", o.URL)
	}
	if _, err := o.Key(); err != nil {
		return nil, fmt.Errorf("API key: %w", err)
	}
	if o.Server == "" {
		o.Server = "localhost"
	}
	o.URL = strings.TrimSuffix(o.URL, "/")
	service := &api{Options: o, client: http.Client{Transport: o.Transport, Timeout: requestTimeout, CheckRedirect: refuseRedirect}}
	return &batch.Provider{Name: "PowerDNS " + u.Redacted(), Service: service, Most: maxPatch, Size: stepSize, Blind: true}, nil
}

// refuseRedirect prevents redirects: the API key would be sent along.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// stepSize returns about how many bytes of JSON a step has.
func stepSize(step dnsprovider.Step) int {
	n := 200 * (len(step.Old) + len(step.New))
	for _, set := range step.New {
		for _, data := range set.Rdata {
			n += 40 + len(data)
		}
	}
	return n + len(step.Name)*(len(step.Old)+len(step.New))
}
