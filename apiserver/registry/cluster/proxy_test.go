package cluster

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	restclient "k8s.io/client-go/rest"
)

func TestJoinPathKeepsWhatIsAskedFor(t *testing.T) {
	for sub, want := range map[string]string{"": "/base", "/api/": "/base/api/", "api/v1": "/base/api/v1", "/../../x": "/base/x"} {
		if got := joinPath("/base", sub); got != want {
			t.Errorf("%q: %q, want %q", sub, got, want)
		}
	}
}

// TestProxyImpersonatesWhatJoinAllows: join --allow-proxy gives the right to users, groups and service accounts. A header for anything else
// is refused by the member, whoever asks: each certificate and token has a credential ID.
func TestProxyImpersonatesWhatJoinAllows(t *testing.T) {
	var got http.Header
	member := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
	defer member.Close()
	caller := &user.DefaultInfo{Name: "admin", UID: "7", Groups: []string{"system:masters", "system:authenticated"}, Extra: map[string][]string{"authentication.kubernetes.io/credential-id": {"X509SHA256=1"}}}
	handler, err := newHandler(&restclient.Config{Host: member.URL, TLSClientConfig: restclient.TLSClientConfig{Insecure: true}}, caller, "/api", nil)
	if err != nil {
		t.Fatal(err)
	}
	handler.ServeHTTP(httptest.NewRecorder(), &http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/api"}, Header: http.Header{"Impersonate-Uid": {"0"}}})
	if got.Get("Impersonate-User") != "admin" || !slices.Equal(got["Impersonate-Group"], caller.Groups) {
		t.Errorf("impersonates %v", got)
	}
	for name := range got {
		if strings.HasPrefix(name, "Impersonate-") && name != "Impersonate-User" && name != "Impersonate-Group" {
			t.Errorf("%s: %v", name, got[name])
		}
	}
}
