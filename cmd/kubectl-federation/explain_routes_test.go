package main

import (
	"strings"
	"testing"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestTLSThatIsPassedOnIsNoRequest: it has no path and no certificate, and is not answered with a status.
func TestTLSThatIsPassedOnIsNoRequest(t *testing.T) {
	out := &strings.Builder{}
	printRoutes(out, &v1beta1.RoutesExplanation{
		Routes: []v1beta1.RouteExplanation{{Host: "a.test", Passthrough: true, Path: "/", PathType: "Prefix", Pool: "shop/a:443/TLS"}, {Host: "b.test", Passthrough: true}},
		Pools:  []v1beta1.PoolExplanation{{Name: "shop/a:443/TLS", Protocol: "tls", From: []v1beta1.SharesExplanation{{}}}},
	}, 10, time.Time{})
	want := `
HOST     PATH             CERTIFICATE   GOES TO
a.test   TLS, passed on   -             shop/a:443/TLS
b.test   TLS, passed on   -             nowhere

Connections to shop/a:443/TLS (tls):
CLUSTER   SHARE   ADDRESS   WHY
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}
