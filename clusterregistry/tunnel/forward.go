package tunnel

import (
	"encoding/json"
	stderrors "errors"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// NewForwarder returns a handler that forwards requests to the API server of config with config's credential, whatever credential they have.
// While paused, which may be nil, returns true, it refuses all that would change something.
func NewForwarder(config *rest.Config, paused func() bool) (http.Handler, error) {
	target, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	all, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.NextProtos = []string{"http/1.1"} // a connection of HTTP/2 cannot be upgraded, as for exec
	upgrades, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: target.Scheme, Host: target.Host})
			r.Out.Host = target.Host
			r.Out.Header.Del("Authorization")
		},
		Transport:     byProtocol{all, upgrades},
		FlushInterval: -1, // events of watches, at once
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				klog.FromContext(r.Context()).Error(err, "Cannot forward a request to the API server", "method", r.Method, "path", r.URL.Path)
			}
			refuse(w, errors.NewServiceUnavailable("the agent of the cluster cannot reach its API server: "+err.Error()))
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if changes(r) && paused != nil && paused() {
			refuse(w, errors.NewForbidden(schema.GroupResource{}, "", errPaused))
			return
		}
		forward.ServeHTTP(w, r)
	}), nil
}

var errPaused = stderrors.New("the cluster's administrators have paused the federation's agent: it only reads")

// byProtocol sends what upgrades its connection by a transport that can.
type byProtocol struct{ all, upgrades http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t byProtocol) RoundTrip(r *http.Request) (*http.Response, error) {
	if isUpgrade(r) {
		return t.upgrades.RoundTrip(r)
	}
	return t.all.RoundTrip(r)
}

// changes reports whether a request may change something: all but reading, and asking what is allowed.
func changes(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return isUpgrade(r) // exec and port-forward come as GET, too
	case http.MethodPost:
		return !strings.HasPrefix(r.URL.Path, "/apis/authorization.k8s.io/")
	}
	return true
}

func isUpgrade(r *http.Request) bool { return r.Header.Get("Upgrade") != "" }

// refuse answers with an error as an API server does.
func refuse(w http.ResponseWriter, err *errors.StatusError) {
	status := err.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	body, marshalErr := json.Marshal(status)
	if marshalErr != nil {
		panic(marshalErr) // it is strings and numbers
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_, _ = w.Write(body) // whoever asked may have gone
}
