package consoletest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// TestForgedRequests sends to a real server what pages of others can have a browser send, with the session that it keeps and with its client
// certificate: nothing is written. Acceptance test 7 of the console, with TestForgedRequestsHaveNoSession, TestForeignPages and TestTheGate.
func TestForgedRequests(t *testing.T) {
	s := startServer(t)
	must(t, s.fleet.clusters(3, nil))
	withCertificate := s.client(t)
	anonymous, err := rest.TransportFor(rest.AnonymousClientConfig(s.admin))
	must(t, err)
	withSession := &http.Client{Transport: anonymous}
	send := func(c *http.Client, method, path, body string, headers []string, cookies ...*http.Cookie) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, s.admin.Host+path, strings.NewReader(body))
		must(t, err)
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			r.Header.Set(name, value)
		}
		for _, one := range cookies {
			r.AddCookie(one)
		}
		answer, err := c.Do(r)
		must(t, err)
		must(t, answer.Body.Close())
		return answer
	}
	const own, asJSON, asText, asForm = "X-Federation-Console: 1", "Content-Type: application/json", "Content-Type: text/plain", "Content-Type: application/x-www-form-urlencoded"
	token := s.tokenOf(t, "editor")
	s.bind(t, "system:serviceaccount:default:editor", "cluster-admin", "")
	login := send(withSession, http.MethodPost, "/console/session", fmt.Sprintf(`{"token":%s}`, quote(token)), []string{own, asJSON})
	const path, namespace = "/api/v1/namespaces", `{"metadata":{"generateName":"forged-"}}`
	if ours := send(withSession, http.MethodPost, path+"?dryRun=All", namespace, []string{own, asJSON}, login.Cookies()...); ours.StatusCode != http.StatusCreated {
		t.Fatalf("the session's own request answers %s: forged ones would prove nothing", ours.Status)
	}
	for name, headers := range map[string][]string{
		"form": {asForm, "Origin: https://evil.test", "Sec-Fetch-Site: cross-site"}, "text": {asText, "Origin: https://evil.test", "Sec-Fetch-Site: cross-site"},
		"no type": {"Origin: https://evil.test", "Sec-Fetch-Site: cross-site"}, "JSON": {asJSON, "Origin: https://evil.test"}, "sibling": {asJSON, "Origin: https://other.localhost", "Sec-Fetch-Site: same-site"},
		"another port": {asJSON, "Origin: https://127.0.0.1:1"},
	} {
		for who, answer := range map[string]*http.Response{
			"certificate": send(withCertificate, http.MethodPost, path, namespace, headers), "session": send(withSession, http.MethodPost, path, namespace, headers, login.Cookies()...),
			"session and header": send(withSession, http.MethodPost, path, namespace, append(headers, own), login.Cookies()...),
			"deletion":           send(withCertificate, http.MethodDelete, "/apis/federation/v1beta1/clusters/a-a-00", "", headers),
		} {
			if answer.StatusCode != http.StatusForbidden {
				t.Errorf("%s, %s: %s", name, who, answer.Status)
			}
		}
	}
	for _, c := range []struct {
		name    string
		headers []string
		want    int
	}{
		{"no Sec-Fetch headers", []string{asJSON}, http.StatusForbidden},
		{"a form's type", []string{own, asForm}, http.StatusUnsupportedMediaType},
		{"a text's type", []string{own, asText}, http.StatusUnsupportedMediaType},
		{"no type, with the header", []string{own}, http.StatusUnsupportedMediaType},
	} {
		if answer := send(withSession, http.MethodPost, path, namespace, c.headers, login.Cookies()...); answer.StatusCode != c.want {
			t.Errorf("%s: %s, want %d", c.name, answer.Status, c.want)
		}
	}
	all, err := s.kube.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, n := range all.Items {
		if strings.HasPrefix(n.Name, "forged-") {
			t.Errorf("namespace %s was made", n.Name)
		}
	}
}
