package gate

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// checkTimeout bounds CheckConsole.
const checkTimeout = 15 * time.Second

// CheckConsole returns an error that says what to do if the federation cannot be reached, or serves no console.
func CheckConsole(ctx context.Context, config *rest.Config) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	base, err := serverURL(config)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodHead, base.JoinPath("/console/").String(), nil)
	if err != nil {
		return err
	}
	r.Host = serverName(config)
	answer, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("the federation (--kubeconfig, --context): %w", err)
	}
	if err := answer.Body.Close(); err != nil {
		return err
	}
	switch answer.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusForbidden:
		return fmt.Errorf("%s serves no console by the name %s: use one of its certificate's names (--tls-san adds one)", config.Host, r.Host)
	}
	return fmt.Errorf("%s serves no console: it runs with --console=false, or is no federation that has one (it answers %q)", config.Host, answer.Status)
}

// newAPIProxy returns what passes requests on to the federation with the credential of config.
func newAPIProxy(config *rest.Config) (http.Handler, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	base, err := serverURL(config)
	if err != nil {
		return nil, err
	}
	name := serverName(config)
	return &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, // each event of a watch at once
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(base)
			p.Out.Host = name
			dropIdentity(p.Out.Header)
		},
		ModifyResponse: func(answer *http.Response) error {
			for _, name := range []string{"Set-Cookie", "X-Content-Type-Options", "Referrer-Policy"} {
				answer.Header.Del(name) // the gate's own are there
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				writeRefusal(w, http.StatusBadGateway, "the federation cannot be reached: "+err.Error())
			}
		},
	}, nil
}

// dropIdentity removes whatever in a request's headers says who asks, or where from: only the credential does.
func dropIdentity(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, "Impersonate-") || strings.HasPrefix(name, "X-Remote-") || strings.HasPrefix(name, "Sec-Fetch-") {
			h.Del(name)
		}
	}
	for _, name := range []string{"Authorization", "Cookie", "Origin", "Referer", consoleHeader} {
		h.Del(name)
	}
}

// serverURL returns the address of the API, with the path that it may be below.
func serverURL(config *rest.Config) (*url.URL, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("the federation's address %q: %w", config.Host, err)
	}
	return base, nil
}

// serverName returns the name by which the server is asked: the one of its certificate, if the kubeconfig names one.
func serverName(config *rest.Config) string {
	base, err := serverURL(config)
	switch {
	case err != nil:
		return ""
	case config.ServerName != "":
		return config.ServerName
	}
	return base.Host
}
