package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"federation/cmd/internal/process"
	"federation/dnsprovider"
	"federation/dnsprovider/authoritative"
)

const testZone = "example.test."

func newZone(t *testing.T, federated bool) (*zone, *authoritative.Server) {
	t.Helper()
	server, err := authoritative.New(authoritative.Options{Zone: testZone, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Run(ctx)
	}()
	t.Cleanup(func() { end(); <-ended })
	return &zone{server: server, name: testZone, federated: federated}, server
}

func address(t *testing.T, name string, last int) dnsprovider.RRSet {
	t.Helper()
	set, err := dnsprovider.New(name+"."+testZone, dnsprovider.A, 15, fmt.Sprintf("192.0.2.%d", last))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func content(t *testing.T, p dnsprovider.Provider) string {
	t.Helper()
	sets, err := p.Records(context.Background(), testZone)
	if err != nil {
		t.Fatal(err)
	}
	return dnsprovider.Diff(nil, sets).String()
}

func status(z *zone) int {
	w := httptest.NewRecorder()
	process.Handler(z.isReady).ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
	return w.Code
}

func TestAFileAloneIsAZone(t *testing.T) {
	z, server := newZone(t, false)
	for _, sets := range [][]dnsprovider.RRSet{{address(t, "a", 1), address(t, "b", 2)}, {address(t, "b", 3)}} {
		if err := z.setFile(t.Context(), sets); err != nil {
			t.Fatal(err)
		}
		if got, want := content(t, server), dnsprovider.Diff(nil, sets).String(); got != want || status(z) != 200 {
			t.Errorf("the zone is\n%swant\n%sand to be ready (%d)", got, want, status(z))
		}
	}
}

func TestTheFederationsNamesStandBesideTheFiles(t *testing.T) {
	z, server := newZone(t, true)
	ctx := t.Context()
	static, served, taken := address(t, "static", 1), address(t, "served", 2), address(t, "static", 3)
	if err := z.setFile(ctx, []dnsprovider.RRSet{static}); err != nil {
		t.Fatal(err)
	}
	if status(z) != 503 {
		t.Error("ready before the federation has been heard of")
	}
	if err := z.Apply(ctx, testZone, dnsprovider.Diff(nil, []dnsprovider.RRSet{served, taken})); err != nil {
		t.Fatal(err)
	}
	if got, want := content(t, server), dnsprovider.Diff(nil, []dnsprovider.RRSet{static, served}).String(); got != want || status(z) != 200 {
		t.Errorf("the zone is\n%swant\n%sand to be ready (%d)", got, want, status(z))
	}
	sees := func(want ...dnsprovider.RRSet) {
		t.Helper()
		if got, want := content(t, z), dnsprovider.Diff(nil, want).String(); got != want {
			t.Errorf("the federation sees\n%swant\n%s", got, want)
		}
	}
	serves := func(held string, want ...dnsprovider.RRSet) {
		t.Helper()
		if got, want := content(t, server), dnsprovider.Diff(nil, want).String(); got != want {
			t.Errorf("the zone is\n%swant\n%s", got, want)
		}
		if got := strings.Join(z.Held(), " "); got != held {
			t.Errorf("held: %q, want %q", got, held)
		}
	}
	sees(served, taken)
	serves("static.example.test.", static, served)
	later, err := dnsprovider.New("served."+testZone, dnsprovider.CNAME, 15, "elsewhere.example.org")
	if err != nil {
		t.Fatal(err)
	}
	if err := z.setFile(ctx, []dnsprovider.RRSet{later}); err != nil { // it takes one name, and leaves the other
		t.Fatal(err)
	}
	serves("served.example.test.", taken, later)
	if err := z.Apply(ctx, testZone, dnsprovider.Diff([]dnsprovider.RRSet{served, taken}, []dnsprovider.RRSet{address(t, "served", 4), taken})); err != nil {
		t.Fatal(err)
	}
	serves("served.example.test.", taken, later)
	if err := z.setFile(ctx, nil); err != nil {
		t.Fatal(err)
	}
	serves("", address(t, "served", 4), taken)
	if err := z.Apply(ctx, testZone, dnsprovider.Diff(nil, []dnsprovider.RRSet{served})); err == nil {
		t.Error("a change from what is not there was made")
	}
	serves("", address(t, "served", 4), taken)
}
