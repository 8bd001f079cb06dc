package tunnel

import (
	"context"
	"encoding/json"
	stderrors "errors"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"federation/controllers/supervisor"
)

// NewForwarder returns a handler that forwards requests to the API server of config with config's credential, whatever credential they have.
// While paused, which may be nil, returns true, it refuses all that would change something, and ends what is under way of that. It never gets a token
// of an account for the federation, which could be used without the agent.
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
			r.SetURL(target) // with the path that it may be below
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
		switch {
		case asksForToken(r):
			refuse(w, errors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts/token"}, "", errToken))
			return
		case paused == nil || !changes(r):
			forward.ServeHTTP(w, r)
			return
		case paused():
			refuse(w, errors.NewForbidden(schema.GroupResource{}, "", errPaused))
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		go supervisor.Keep(ctx, "tunnel", func(ctx context.Context) {
			for !paused() {
				select {
				case <-ctx.Done():
					return
				case <-time.After(pausedEvery):
				}
			}
			cancel() // exec and port-forward end
		})
		forward.ServeHTTP(w, r.WithContext(ctx))
	}), nil
}

// pausedEvery is how often a request that may change something looks whether it still may.
const pausedEvery = time.Second

var (
	errPaused = stderrors.New("the cluster's administrators have paused the federation's agent: it only reads")
	errToken  = stderrors.New("the agent of the cluster gives no tokens away")
)

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
		return isUpgrade(r) || strings.Contains(r.URL.Path+"/", "/proxy/") // exec and port-forward come as GET, too, and what is behind a proxy is not known
	case http.MethodPost:
		return !strings.HasPrefix(r.URL.Path, "/apis/authorization.k8s.io/")
	}
	return true
}

// asksForToken reports whether a request is for a token of a service account.
func asksForToken(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/serviceaccounts/") && strings.HasSuffix(strings.TrimRight(r.URL.Path, "/"), "/token")
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
