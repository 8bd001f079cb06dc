package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apimachinery/third_party/forked/golang/netutil"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/credential"
)

// SecretGetter reads Secrets of the federation's namespace.
type SecretGetter interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Secret, error)
}

// ProxyREST serves clusters/NAME/proxy: it forwards requests to the member's API with the federation's credential,
// impersonating the caller, so that the member decides what the caller may do there.
type ProxyREST struct {
	clusters rest.Getter
	secrets  SecretGetter
	tunnel   Tunnel // nil: no agents connect here
}

var _ rest.Connecter = &ProxyREST{}

// New returns the options, the object of the subresource.
func (*ProxyREST) New() runtime.Object { return &v1beta1.ClusterProxyOptions{} }

// Destroy does nothing: there is nothing to free.
func (*ProxyREST) Destroy() {}

// ConnectMethods returns the HTTP methods that are passed on.
func (*ProxyREST) ConnectMethods() []string {
	return []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}
}

// NewConnectOptions makes the rest of the URL after /proxy the option "path".
func (*ProxyREST) NewConnectOptions() (runtime.Object, bool, string) {
	return &v1beta1.ClusterProxyOptions{}, true, "path"
}

// Connect returns the handler that passes one request on.
func (r *ProxyREST) Connect(ctx context.Context, name string, options runtime.Object, responder rest.Responder) (http.Handler, error) {
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return nil, errors.NewInternalError(fmt.Errorf("the request has no user"))
	}
	config, err := r.configOf(ctx, name)
	if err != nil {
		return nil, err
	}
	return NewHandler(name, config, caller, options.(*v1beta1.ClusterProxyOptions).Path, responder)
}

// configOf returns how the federation reaches the member of that name, as its own account there.
func (r *ProxyREST) configOf(ctx context.Context, name string) (*restclient.Config, error) {
	object, err := r.clusters.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	config, err := r.memberConfig(ctx, object.(*v1beta1.Cluster))
	if err != nil {
		return nil, errors.NewServiceUnavailable(fmt.Sprintf("cluster %q: %v", name, err))
	}
	return config, nil
}

// unreachable answers an error of a connection to a member by 503, with the cluster's name. Other errors say themselves what they are.
type unreachable struct {
	rest.Responder
	cluster string
}

// Error implements rest.Responder.
func (u unreachable) Error(err error) {
	if _, ok := err.(errors.APIStatus); !ok {
		err = errors.NewServiceUnavailable(fmt.Sprintf("cluster %q: %v", u.cluster, err))
	}
	u.Responder.Error(err)
}

// NewHandler returns a handler that forwards requests for one path to the member of config, which it changes: with the
// federation's token, impersonating the caller; nil: as the federation. name is the cluster's, for errors.
func NewHandler(name string, config *restclient.Config, caller user.Info, subpath string, responder rest.Responder) (http.Handler, error) {
	if config.Dial != nil { // through an agent: each request has a connection of its own, which ends with it
		config.Transport, config.Dial = &http.Transport{DialContext: config.Dial, DisableKeepAlives: true}, nil
	}
	location, err := url.Parse(config.Host)
	through, tunnelled := config.Transport.(*http.Transport)
	if err != nil || location.Scheme != "https" && !tunnelled {
		return nil, errors.NewServiceUnavailable(fmt.Sprintf("the member's address is %q: it must be https", config.Host))
	}
	if caller != nil {
		config.Impersonate = impersonation(caller)
	}
	config.NextProtos = []string{"http/1.1"} // an upgraded connection cannot be HTTP/2
	secured, err := restclient.TransportFor(config)
	if err != nil {
		return nil, errors.NewServiceUnavailable(err.Error())
	}
	upgrades, err := upgradeTransport(config, through)
	if err != nil {
		return nil, errors.NewServiceUnavailable(err.Error())
	}
	location.Path = joinPath(location.Path, subpath)
	handler := proxy.NewUpgradeAwareHandler(location, notAPage{secured}, false, false, proxy.NewErrorResponder(unreachable{responder, name}))
	handler.UpgradeTransport = upgrades
	handler.RejectForwardingRedirects = true
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'") // whatever the member answers, in a browser it is no page of ours
		w.Header().Set("X-Content-Type-Options", "nosniff")
		one, to := *handler, *location
		to.RawQuery = req.URL.RawQuery // which the handler adds to requests that are no upgrades
		one.Location = &to
		one.ServeHTTP(w, withoutCredentials(req))
	}), nil
}

// impersonation returns the caller's name and groups, by which the member's RBAC decides. UID and extra values are
// about the caller's account and credential here, and every certificate and token has some: impersonating them would
// need a permission for each by name.
func impersonation(caller user.Info) restclient.ImpersonationConfig {
	return restclient.ImpersonationConfig{UserName: caller.GetName(), Groups: caller.GetGroups()}
}

// withoutCredentials returns the request without what authenticates, or claims to be, its sender: the federation's
// credential and the caller's name are set instead.
func withoutCredentials(req *http.Request) *http.Request {
	req = req.Clone(req.Context())
	maps.DeleteFunc(req.Header, func(name string, _ []string) bool { return speaksOfSender(name) })
	return req
}

// speaksOfSender reports whether a header authenticates its sender, or claims an identity. It ignores case, because a
// header with an invalid name is not canonicalized.
func speaksOfSender(header string) bool {
	switch name := strings.ToLower(strings.TrimSpace(header)); name {
	case "authorization", "cookie":
		return true
	default:
		return strings.HasPrefix(name, "impersonate-") || strings.HasPrefix(name, "x-remote-")
	}
}

// notAPage drops from answers what tells a browser to keep or forget something of the federation's own address.
type notAPage struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t notAPage) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Header.Del("Set-Cookie")
		answer.Header.Del("Clear-Site-Data")
	}
	return answer, err
}

// upgradeTransport is for connections that are upgraded (exec, port-forward), which the proxy dials
// itself: TLS, or through, which may be nil, below; the headers above.
func upgradeTransport(config *restclient.Config, through *http.Transport) (proxy.UpgradeRequestRoundTripper, error) {
	tlsConfig, err := restclient.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	dial := (&tls.Dialer{Config: tlsConfig}).DialContext
	if through != nil {
		dial = through.DialContext
	}
	transportConfig, err := config.TransportConfig()
	if err != nil {
		return nil, err
	}
	headers, err := transport.HTTPWrappersForConfig(transportConfig, proxy.MirrorRequest)
	if err != nil {
		return nil, err
	}
	bounded := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return boundHead(conn), nil
	}}
	return upgrades{proxy.NewUpgradeRequestRoundTripper(bounded, headers), bounded}, nil
}

// upgrades has the proxy dial as bounded does, and nothing above it: TLS is below.
type upgrades struct {
	proxy.UpgradeRequestRoundTripper
	bounded http.RoundTripper
}

// WrapRequest implements proxy.UpgradeRequestRoundTripper.
func (u upgrades) WrapRequest(r *http.Request) (*http.Request, error) {
	r, err := u.UpgradeRequestRoundTripper.WrapRequest(r)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = "http", netutil.CanonicalAddr(r.URL)
	return r, nil
}

// WrappedRoundTripper lets the proxy find the dialer.
func (u upgrades) WrappedRoundTripper() http.RoundTripper { return u.bounded }

// memberConfig returns how the federation reaches a member: the address that fits us best, the credential
// from the Secret; or its agent.
func (r *ProxyREST) memberConfig(ctx context.Context, c *v1beta1.Cluster) (*restclient.Config, error) {
	if c.IsPull() {
		return AgentConfig(r.tunnel, c)
	}
	if c.Spec.SecretRef == nil {
		return nil, fmt.Errorf("spec.secretRef is not set: join the cluster again")
	}
	secret, err := r.secrets.Get(ctx, c.Spec.SecretRef.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	own, err := credential.LocalAddresses()
	if err != nil {
		return nil, err
	}
	return credential.Inline(c, secret, own)
}

// joinPath keeps a trailing slash, which is part of the requested path.
func joinPath(base, sub string) string {
	joined := path.Join("/", base, path.Join("/", sub)) // dots in sub do not lead out of base
	if strings.HasSuffix(sub, "/") && joined != "/" {
		joined += "/"
	}
	return joined
}
