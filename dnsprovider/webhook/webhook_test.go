package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"federation/dnsprovider"
	"federation/dnsprovider/externaldns"
	"federation/dnsprovider/providertest"
)

const zone = "example.com."

// fake is a webhook provider as external-dns documents it: it negotiates, compares nothing, and makes
// what it is told.
type fake struct {
	*httptest.Server
	mu        sync.Mutex
	endpoints []externaldns.Endpoint
	// least is a TTL to which smaller ones are adjusted.
	least int64
	// contentType is that of answers.
	contentType string
	// last are the changes of the last POST.
	last changes
}

func startFake(t *testing.T) *fake {
	f := &fake{contentType: mediaType}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		f.give(w, map[string]any{"include": []string{"example.com"}})
	})
	mux.HandleFunc("GET /records", func(w http.ResponseWriter, _ *http.Request) { f.give(w, f.endpoints) })
	mux.HandleFunc("POST /adjustendpoints", f.adjust)
	mux.HandleFunc("POST /records", f.change)
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if r.Header.Get("Accept") != mediaType {
			http.Error(w, "Accept must be "+mediaType, http.StatusNotAcceptable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *fake) give(w http.ResponseWriter, what any) {
	w.Header().Set("Content-Type", f.contentType)
	_ = json.NewEncoder(w).Encode(what)
}

func (f *fake) adjust(w http.ResponseWriter, r *http.Request) {
	var list []externaldns.Endpoint
	if err := json.NewDecoder(r.Body).Decode(&list); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for i := range list {
		list[i].RecordTTL = max(list[i].RecordTTL, f.least)
		list[i].ProviderSpecific = append(list[i].ProviderSpecific, externaldns.Property{Name: "seen", Value: "yes"})
	}
	slices.Reverse(list) // any order
	f.give(w, list)
}

func (f *fake) change(w http.ResponseWriter, r *http.Request) {
	var in changes
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.UpdateOld) != len(in.UpdateNew) {
		http.Error(w, fmt.Sprintf("bad changes: %v", err), http.StatusBadRequest)
		return
	}
	f.last = in
	for _, e := range in.Create {
		if !strings.HasSuffix("."+e.DNSName, ".example.com") {
			http.Error(w, "no zone for "+e.DNSName, http.StatusInternalServerError)
			return
		}
	}
	gone := map[string]bool{}
	for _, e := range append(in.Delete, in.UpdateOld...) {
		gone[e.DNSName+" "+e.RecordType+" "+e.SetIdentifier] = true
	}
	f.endpoints = slices.DeleteFunc(f.endpoints, func(e externaldns.Endpoint) bool { return gone[e.DNSName+" "+e.RecordType+" "+e.SetIdentifier] })
	f.endpoints = append(f.endpoints, append(in.Create, in.UpdateNew...)...)
	w.WriteHeader(http.StatusNoContent)
}

func connect(t *testing.T, f *fake, minTTL uint32) dnsprovider.Provider {
	t.Helper()
	p, err := New(Options{URL: f.URL, MinTTL: minTTL})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestWebhookConforms(t *testing.T) {
	providertest.Run(t, zone, func(t *testing.T) dnsprovider.Provider { return connect(t, startFake(t), 0) })
}

func set(t *testing.T, name string, ttl uint32, rdata ...string) dnsprovider.RRSet {
	t.Helper()
	s, err := dnsprovider.New(name, dnsprovider.A, ttl, rdata...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestChangesKeepWhatTheProviderAdded(t *testing.T) {
	f := startFake(t)
	p := connect(t, f, 0)
	one, two := []dnsprovider.RRSet{set(t, "a.example.com", 15, "192.0.2.1")}, []dnsprovider.RRSet{set(t, "a.example.com", 15, "192.0.2.2")}
	for _, c := range []dnsprovider.ChangeSet{dnsprovider.Diff(nil, one), dnsprovider.Diff(one, two)} {
		if err := p.Apply(t.Context(), zone, c); err != nil {
			t.Fatal(err)
		}
	}
	if old := f.last.UpdateOld; len(old) != 1 || len(old[0].ProviderSpecific) != 1 || old[0].Targets[0] != "192.0.2.1" {
		t.Errorf("what goes was sent as %+v, want it as it was listed", old)
	}
	if now := f.last.UpdateNew; len(now) != 1 || len(now[0].ProviderSpecific) != 1 || now[0].Targets[0] != "192.0.2.2" {
		t.Errorf("what comes was sent as %+v, want it as it was adjusted", now)
	}
}

func TestAlteredRecordsAreRefused(t *testing.T) {
	f := startFake(t)
	f.least = 60
	changes := dnsprovider.Diff(nil, []dnsprovider.RRSet{set(t, "a.example.com", 15, "192.0.2.1")})
	err := connect(t, f, 0).Apply(t.Context(), zone, changes)
	if err == nil || !strings.Contains(err.Error(), "RecordTTL:60") || len(f.endpoints) > 0 {
		t.Errorf("error %v, want one that shows the TTL", err)
	}
	if err := connect(t, f, 60).Apply(t.Context(), zone, changes); err != nil {
		t.Errorf("with the least TTL given: %v", err)
	}
}

func TestWebhookErrors(t *testing.T) {
	f := startFake(t)
	if _, err := connect(t, f, 0).Records(t.Context(), "example.org."); err == nil || !strings.Contains(err.Error(), "it is for example.com only") {
		t.Errorf("error %v, want which zones there are", err)
	}
	f.contentType = "text/html"
	if _, err := connect(t, f, 0).Records(t.Context(), zone); err == nil || !strings.Contains(err.Error(), "is this a webhook provider") {
		t.Errorf("error %v, want one about the media type", err)
	}
	f.Close()
	if _, err := connect(t, f, 0).Records(t.Context(), zone); err == nil || !strings.Contains(err.Error(), "connect") {
		t.Errorf("error %v, want that nobody is there", err)
	}
	for _, url := range []string{"", "127.0.0.1:8888", "ftp://a", "http://"} {
		if _, err := New(Options{URL: url}); err == nil {
			t.Errorf("URL %q is taken", url)
		}
	}
}

func TestDomainFilter(t *testing.T) {
	for _, c := range []struct {
		filter domainFilter
		want   bool
	}{
		{domainFilter{}, true},
		{domainFilter{Include: []string{"com"}}, true},
		{domainFilter{Include: []string{".com"}}, true},
		{domainFilter{Include: []string{"org", "Example.com"}}, true},
		{domainFilter{Include: []string{"org"}}, false},
		{domainFilter{Include: []string{"a.example.com"}}, false},
		{domainFilter{Exclude: []string{"example.com"}}, false},
		{domainFilter{Exclude: []string{"a.example.com"}}, true},
	} {
		if got := c.filter.has(zone); got != c.want {
			t.Errorf("%+v has %s: %t, want %t", c.filter, zone, got, c.want)
		}
	}
}

// endless is an answer without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestLargeAnswersAreRefused(t *testing.T) {
	if err := decodeJSON(endless{}, new([]externaldns.Endpoint)); err != errTooLarge {
		t.Errorf("error %v, want %v", err, errTooLarge)
	}
}
