package main

import (
	"errors"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

type answers map[string]int // by host, a status or 0 for none

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	status := a[r.URL.Hostname()]
	if status == 0 {
		return nil, errors.New("refused")
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(""))}, nil
}

func TestBalancerLeadsToNodesThatAreWell(t *testing.T) {
	first, second := netip.MustParseAddr("10.64.0.1"), netip.MustParseAddr("10.64.0.2")
	all := []netip.Addr{first, second}
	nodes := answers{}
	c := &cluster{Options: &Options{}}
	b := c.newBalancer(all)
	b.client.Transport = nodes
	for i, step := range []struct {
		first, second int
		want          []netip.Addr
	}{
		{0, 0, all}, // none is well: all
		{200, 0, []netip.Addr{first}},
		{200, 503, []netip.Addr{first}},
		{200, 200, all},
		{0, 200, all}, // one bad look is none
		{0, 200, []netip.Addr{second}},
		{200, 200, all},
	} {
		nodes["10.64.0.1"], nodes["10.64.0.2"] = step.first, step.second
		if got := b.look(); !slices.Equal(got, step.want) {
			t.Errorf("look %d: got %v, want %v", i, got, step.want)
		}
	}
}
