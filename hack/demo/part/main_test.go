package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A part answers with what it calls, and fails with the first part below it that fails.
func TestAnswers(t *testing.T) {
	parts := map[string]*part{
		"web":   {name: "web-1 on a", calls: []string{"cart", "stock"}},
		"cart":  {name: "cart-1 on b", calls: []string{"stock"}},
		"stock": {name: "stock-1 on c"},
		"mail":  {name: "mail-1 on d", calls: []string{"nobody"}},
	}
	addresses := map[string]string{}
	for name, p := range parts {
		server := httptest.NewServer(p.handler())
		defer server.Close()
		addresses[name+".shop.test.:80"] = server.Listener.Addr().String()
	}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if addresses[address] == "" {
			return nil, &net.DNSError{Err: "no such host", Name: address}
		}
		return new(net.Dialer).DialContext(ctx, network, addresses[address])
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	for _, p := range parts {
		p.domain, p.client = "shop.test.", client
	}
	for name, want := range map[string]string{
		"web":  "200 web-1 on a\n  cart: cart-1 on b\n    stock: stock-1 on c\n  stock: stock-1 on c\n",
		"mail": "502 mail-1 on d: Get \"http://nobody.shop.test./\": lookup nobody.shop.test.:80: no such host\n",
	} {
		response, err := client.Get("http://" + name + ".shop.test./")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Split(response.Status, " ")[0] + " " + string(body); got != want {
			t.Errorf("%s answered\n%s\nwant\n%s", name, got, want)
		}
	}
}
