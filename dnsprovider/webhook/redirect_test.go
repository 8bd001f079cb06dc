package webhook

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// Records go to the webhook provider, and nowhere else.
func TestWebhookFollowsNoRedirect(t *testing.T) {
	var asked atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer elsewhere.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	p, err := New(Options{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Records(context.Background(), "example.com."); err == nil || asked.Load() > 0 {
		t.Errorf("error %v, asked elsewhere %d times", err, asked.Load())
	}
}
