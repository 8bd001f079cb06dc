package powerdns

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// A server that leads us elsewhere does not get the API key sent there.
func TestPowerDNSFollowsNoRedirect(t *testing.T) {
	var asked atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer elsewhere.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	p, err := New(Options{URL: server.URL, Key: func() (string, error) { return "secret", nil }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Records(context.Background(), "example.com."); err == nil {
		t.Error("a redirect was taken for an answer")
	}
	if asked.Load() > 0 {
		t.Error("the key was sent elsewhere")
	}
}
