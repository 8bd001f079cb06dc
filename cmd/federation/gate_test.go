package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/writegate"
)

// TestAShardHolderWritesNothingAfterItsLease: neither to the federation nor to members.
func TestAShardHolderWritesNothingAfterItsLease(t *testing.T) {
	written := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { written++ }))
	defer server.Close()
	now := time.Hour
	g := writegate.New(time.Second, func() time.Duration { return now })
	c, err := (&controllers{config: &rest.Config{Host: server.URL}, shards: g, several: true}).behind(g)
	if err != nil {
		t.Fatal(err)
	}
	remove := func() error {
		return c.client.Resource(v1beta1.ClustersResource).Delete(t.Context(), "c", metav1.DeleteOptions{})
	}
	if err := remove(); !errors.Is(err, writegate.ErrClosed) || written > 0 {
		t.Errorf("not renewed: %v, written %d times", err, written)
	}
	g.Renewed(now)
	if err := remove(); errors.Is(err, writegate.ErrClosed) || written != 1 {
		t.Errorf("renewed: %v, written %d times", err, written)
	}
	if got := c.members().Gate; got != g {
		t.Errorf("members are written to behind the gate %p, want %p", got, g)
	}
	c.several = false
	if got := c.members().Gate; got != nil {
		t.Error("one process that has all shards has no Lease to renew, and a gate")
	}
}
