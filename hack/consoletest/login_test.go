package consoletest

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/console/testissuer"
)

// serving is the certificate of the server.
func (s *server) serving(t *testing.T) *x509.Certificate {
	t.Helper()
	u, err := url.Parse(s.admin.Host)
	must(t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.admin.CAData)
	conn, err := tls.Dial("tcp", u.Host, &tls.Config{RootCAs: pool})
	must(t, err)
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0]
}

// tokenOf returns a token of a service account that may view, for as long.
func (s *server) tokenOf(t *testing.T, name string) string {
	t.Helper()
	accounts := s.kube.CoreV1().ServiceAccounts("default")
	_, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(t, err)
	s.bind(t, "system:serviceaccount:default:"+name, "view", "")
	s.bind(t, "system:serviceaccount:default:"+name, "federation-cluster-viewer", "")
	hour := int64(3600)
	asked, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hour}}, metav1.CreateOptions{})
	must(t, err)
	return asked.Status.Token
}

// reads is what the page's own request for Namespaces answers, and what any other script's does.
const reads = `Promise.all([{"X-Federation-Console": "1"}, {}].map((headers) => fetch("/api/v1/namespaces", {headers}).then((r) => r.status)))`

// TestLoginWithAToken logs in at the server itself, without the plugin, and out again. Acceptance tests 7 and 10 of the console.
func TestLoginWithAToken(t *testing.T) {
	s := startServer(t)
	seedFew(t, s)
	token := s.tokenOf(t, "viewer")
	b := startBrowser(t, desk, s.serving(t))
	b.open(s.admin.Host + "/console/")
	b.wait(`document.querySelector(".login input")`)
	b.checkAccessible("login")
	logIn := func(token string) {
		t.Helper()
		b.eval(fmt.Sprintf(`(() => {document.getElementById("token").value = %s; document.querySelector(".login form").requestSubmit()})()`, quote(token)), nil)
	}
	// What a browser does to requests under way when the machine's network changes.
	b.eval(`(() => {const real = fetch; window.fetch = () => {window.fetch = real; return Promise.reject(new TypeError("network changed"))}})()`, nil)
	logIn("wrong")
	b.waitText("the API does not accept this token")
	logIn(token)
	b.waitText("system:serviceaccount:default:viewer")
	b.wait(`document.querySelectorAll(".cell").length > 0`)
	var cookies string
	var codes []int
	b.eval("document.cookie", &cookies)
	if b.eval(reads, &codes); cookies != "" || fmt.Sprint(codes) != "[200 401]" {
		t.Errorf("scripts read the cookies %q; with our header and without, the API answers %v", cookies, codes)
	}
	b.eval("(window.before = true, location.reload())", nil)
	const logOut = `[...document.querySelectorAll("header button")].find((e) => e.innerText === "Log out")`
	b.wait(`!window.before && document.querySelectorAll(".cell").length > 0 && ` + logOut)
	b.checkAccessible("logged in")
	b.eval(logOut+".click()", nil)
	b.wait(`document.querySelector(".login input")`)
	if b.eval(reads, &codes); fmt.Sprint(codes) != "[401 401]" {
		t.Errorf("after logout the API answers %v", codes)
	}
	b.checkClean(s.admin.Host)
}

// TestLoginAtAnIssuer logs in at an OpenID Connect issuer that the API trusts; the person's groups decide what may be seen.
// Acceptance test 11 of the console.
func TestLoginAtAnIssuer(t *testing.T) {
	i := testissuer.New(t)
	i.Claims = func(claims map[string]any) { claims["groups"] = []string{"operators"} }
	dir := t.TempDir()
	ca, config := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "authentication.yaml")
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw})
	must(t, os.WriteFile(ca, authority, 0o600), os.WriteFile(config, fmt.Appendf(nil, `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: %q, audiences: [console], certificateAuthority: %q}
  claimMappings:
    username: {claim: sub, prefix: "oidc:"}
    groups: {claim: groups, prefix: "oidc:"}
`, i.URL, authority), 0o600))
	s := startServer(t, "--authentication-config", config, "--console-oidc-issuer-url", i.URL, "--console-oidc-client-id", "console", "--console-oidc-ca-file", ca)
	seedFew(t, s)
	for _, role := range []string{"view", "federation-cluster-viewer"} {
		_, err := s.kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{GenerateName: "console-"},
			Subjects: []rbacv1.Subject{{Kind: "Group", APIGroup: rbacv1.GroupName, Name: "oidc:operators"}}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}}, metav1.CreateOptions{})
		must(t, err)
	}
	waitForIssuer(t, s, i)
	b := startBrowser(t, desk, s.serving(t), i.Certificate())
	b.open(s.admin.Host + "/console/")
	b.waitText("Log in with your organization")
	b.checkAccessible("login at an issuer")
	b.eval(`document.querySelector(".login a.button").click()`, nil)
	b.waitText("oidc:alice")
	b.wait(`document.querySelectorAll(".cell").length > 0`)
	var codes []int
	if b.eval(reads, &codes); fmt.Sprint(codes) != "[200 401]" {
		t.Errorf("with our header and without, the API answers %v", codes)
	}
}

// waitForIssuer waits until the API has read the issuer's keys, which it does in the background.
func waitForIssuer(t *testing.T, s *server, i *testissuer.Issuer) {
	t.Helper()
	client := s.client(t)
	client.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // no credential of ours
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.admin.Host+"/version", nil)
		must(t, err)
		r.Header.Set("Authorization", "Bearer "+i.Token(t, map[string]any{"aud": "console"}))
		answer, err := client.Do(r)
		must(t, err)
		answer.Body.Close()
		if answer.StatusCode != http.StatusUnauthorized {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the API does not know the issuer after a minute: %s", answer.Status)
		}
	}
}
