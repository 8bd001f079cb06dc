package cluster

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
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

// TestProxyImpersonatesWhatJoinAllows checks that we send headers only for users, groups and service accounts, which
// join --allow-proxy permits. The member rejects any other header, and each certificate and token has a credential ID.
func TestProxyImpersonatesWhatJoinAllows(t *testing.T) {
	var got http.Header
	member := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
	defer member.Close()
	caller := &user.DefaultInfo{Name: "admin", UID: "7", Groups: []string{"system:masters", "system:authenticated"}, Extra: map[string][]string{"authentication.kubernetes.io/credential-id": {"X509SHA256=1"}}}
	handler, err := NewHandler("east-a", &restclient.Config{Host: member.URL, TLSClientConfig: restclient.TLSClientConfig{Insecure: true}}, caller, "/api", nil)
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

// What a member answers is no page of the federation's in a browser, and keeps nothing there; a member that an agent connects is asked through it.
func TestAnswersOfMembersAreNoPages(t *testing.T) {
	member := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Set-Cookie", "a=b")
		fmt.Fprint(w, "<script>")
	}))
	defer member.Close()
	dialled := 0
	config := &restclient.Config{Host: "http://agent", Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		dialled++
		return (&net.Dialer{}).DialContext(ctx, network, member.Listener.Addr().String())
	}}
	w := httptest.NewRecorder()
	handler, err := NewHandler("east-a", config, &user.DefaultInfo{Name: "admin"}, "/x", badGateway{w})
	if err != nil {
		t.Fatal(err)
	}
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/x", nil))
	if h := w.Header(); w.Code != http.StatusOK || dialled != 1 || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") || h.Get("X-Content-Type-Options") != "nosniff" || h["Set-Cookie"] != nil {
		t.Errorf("%d, %v, dialled %d times", w.Code, w.Header(), dialled)
	}
}

// TestProxyPassesUpgradesOn checks exec and port-forward, whose connections both ends then use freely. The request to
// the member has the federation's credential for the caller, a service account here, and nothing that the caller
// claims; a redirect is not followed.
func TestProxyPassesUpgradesOn(t *testing.T) {
	var got http.Header
	var query string
	member := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, query = r.Header, r.URL.RawQuery
		if r.URL.Path == "/elsewhere" {
			http.Redirect(w, r, "https://169.254.169.254/", http.StatusTemporaryRedirect)
			return
		}
		conn, both, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
		line, _ := both.ReadString('\n')
		fmt.Fprint(conn, "echo "+line)
	}))
	t.Cleanup(member.Close)
	caller := &user.DefaultInfo{Name: "system:serviceaccount:shop:bot", UID: "7", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:shop"}, Extra: map[string][]string{"a": {"b"}}}
	config := &restclient.Config{Host: member.URL, BearerToken: "members", TLSClientConfig: restclient.TLSClientConfig{Insecure: true}}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler, err := NewHandler("east-a", config, caller, r.URL.Path, badGateway{w})
		if err != nil {
			t.Error(err)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close) // after the connections
	ask := func(path string) (status string, answer *bufio.Reader, conn net.Conn) {
		conn, err := net.Dial("tcp", front.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nAuthorization: Bearer callers\r\nCookie: a=b\r\n"+
			"Impersonate-User: root\r\nImpersonate-Uid: 0\r\nX-Remote-Group: system:masters\r\n\r\n", path)
		answer = bufio.NewReader(conn)
		status, err = answer.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return status, answer, conn
	}
	const options = "command=sh&command=-c&stdout=true"
	status, answer, conn := ask("/api/v1/namespaces/shop/pods/web/exec?" + options)
	if !strings.HasPrefix(status, "HTTP/1.1 101 ") {
		t.Fatal(status)
	}
	for line := ""; line != "\r\n"; {
		line, _ = answer.ReadString('\n')
	}
	fmt.Fprintln(conn, "ping")
	if echo, err := answer.ReadString('\n'); echo != "echo ping\n" {
		t.Errorf("%q, %v", echo, err)
	}
	if query != options {
		t.Errorf("the member was asked with the options %q, want %q", query, options)
	}
	for name, want := range map[string][]string{
		"Authorization": {"Bearer members"}, "Cookie": nil, "Impersonate-User": {caller.Name}, "Impersonate-Group": caller.Groups, "Impersonate-Uid": nil, "Impersonate-Extra-A": nil, "X-Remote-Group": nil,
	} {
		if !slices.Equal(got[name], want) {
			t.Errorf("the member was asked with %s: %q, want %q", name, got[name], want)
		}
	}
	if status, _, _ := ask("/elsewhere"); !strings.HasPrefix(status, "HTTP/1.1 502 ") {
		t.Errorf("a redirect of an upgrade was answered with %s", status)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	redirected, err := client.Get(front.URL + "/elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	defer redirected.Body.Close()
	if redirected.StatusCode != http.StatusBadGateway {
		t.Errorf("a redirect was answered with %s", redirected.Status)
	}
}

// badGateway answers errors with 502.
type badGateway struct{ http.ResponseWriter }

func (b badGateway) Object(int, runtime.Object) { b.WriteHeader(http.StatusBadGateway) }
func (b badGateway) Error(error)                { b.WriteHeader(http.StatusBadGateway) }
