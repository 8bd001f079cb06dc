package cluster

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"federation/apiserver/apis/federation/v1beta1"
)

// InspectREST serves clusters/NAME/inspect: it forwards one GET to the member's API as the federation's own account, so that whoever has the right to it
// sees there what the federation sees. Nothing is changed, watched or upgraded that way.
type InspectREST struct{ *ProxyREST }

var _ rest.Connecter = &InspectREST{}

// ConnectMethods returns the HTTP method that is passed on.
func (*InspectREST) ConnectMethods() []string { return []string{http.MethodGet} }

// Connect returns the handler that passes one request on.
func (r *InspectREST) Connect(ctx context.Context, name string, options runtime.Object, responder rest.Responder) (http.Handler, error) {
	config, err := r.configOf(ctx, name)
	if err != nil {
		return nil, err
	}
	handler, err := NewHandler(name, config, nil, options.(*v1beta1.ClusterProxyOptions).Path, responder)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		query := req.URL.Query()
		for _, endless := range []string{"watch", "follow"} {
			if query.Has(endless) {
				responder.Error(errors.NewBadRequest(fmt.Sprintf("%s=%s: must be left out: clusters/%s/inspect reads once", endless, query.Get(endless), name)))
				return
			}
		}
		if req.Header.Get("Upgrade") != "" {
			responder.Error(errors.NewBadRequest(fmt.Sprintf("Upgrade %q: must be left out: clusters/%s/inspect reads once", req.Header.Get("Upgrade"), name)))
			return
		}
		handler.ServeHTTP(w, req)
	}), nil
}
