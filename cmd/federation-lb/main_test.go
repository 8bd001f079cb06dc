package main

import (
	"bytes"
	"net"
	"net/http"
	"strings"
	"testing"

	"federation/controllers/loadbalancer/proxy"
)

// output returns the program's output for arguments.
func output(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := command()
	c.SetOut(&out)
	c.SetArgs(args)
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

func TestFlagsAreChecked(t *testing.T) {
	serve := []string{"--kubeconfig", "/none"}
	for want, args := range map[string][]string{
		"--kubeconfig is required":                        {},
		"one of them must be given":                       append(serve, "--http-bind-address", "", "--https-bind-address", ""),
		`--http-bind-address "here": must be HOST:PORT`:   append(serve, "--http-bind-address", "here"),
		`--trusted-peers "10.0.0.1": must be networks`:    append(serve, "--trusted-peers", "10.0.0.1"),
		`--local-targets "10.0.0.1": must be networks`:    append(serve, "--local-targets", "10.0.0.1"),
		"--proxy-protocol needs --trusted-peers":          append(serve, "--proxy-protocol"),
		"must be 1 or more":                               append(serve, "--max-connections", "0"),
		"must not be negative":                            append(serve, "--drain-delay", "-1s"),
		"--upstream-ca-file: open /none":                  append(serve, "--upstream-ca-file", "/none"),
		`--name "A_b"`:                                    append(serve, "--name", "A_b"),
		`--addresses "127.0.0.1": must be an IP address`:  append(serve, "--addresses", "127.0.0.1"),
		`--addresses "x": must be an IP address`:          append(serve, "--addresses", "x"),
		`--service-ports "70000": must be ports`:          append(serve, "--service-ports", "70000"),
		`must not have port 9154, which is that of --met`: append(serve, "--service-ports", "9100-9200"),
		`--service-bind-address "here": must be an IP`:    append(serve, "--service-bind-address", "here"),
		`--service-proxy-mode "ipvs": must be userspace`:  append(serve, "--service-proxy-mode", "ipvs"),
		"must be userspace with --proxy-protocol":         append(serve, "--service-proxy-mode", "nftables", "--proxy-protocol", "--trusted-peers", "10.0.0.0/8"),
		"needs --service-bind-address":                    append(serve, "--service-proxy-mode", "nftables", "--local-targets", "192.0.2.0/24"),
		`--service-idle-timeout 1s: must be 10s or more`:  append(serve, "--service-idle-timeout", "1s"),
		`without one, a port`:                             {"trace", "--host", "a.test", "--port", "80"},
		`--kubeconfig "/none"`:                            serve,
		"a host is required":                              {"trace"},
		"must begin with a slash":                         {"trace", "--host", "a.test", "--path", "x"},
	} {
		if _, err := output(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want one with %q", args, err, want)
		}
	}
}

// TestTraceAsksARunningLoadBalancer, by its metrics port.
func TestTraceAsksARunningLoadBalancer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	if _, err := output(t, "trace", "--host", "www.test", "--metrics-address", address); err == nil || !strings.Contains(err.Error(), "no load balancer answers") {
		t.Errorf("where nobody listens: %v", err)
	}
	o := newOptions()
	o.metrics = address
	go func() { _ = o.serveMetrics(t.Context(), proxy.New(proxy.Options{}), func() error { return nil }) }()
	for range 200 {
		if answer, err := http.Get("http://" + address + "/readyz"); err == nil {
			_ = answer.Body.Close()
			break
		}
	}
	if text, err := output(t, "trace", "--port", "5432", "--metrics-address", address); err != nil || text != "port 5432: no Service of the class is served there\n" {
		t.Errorf("%q, %v", text, err)
	}
	text, err := output(t, "trace", "--host", "www.test", "--metrics-address", address)
	if want := "host \"www.test\": no Ingress of the class has it: 404\n"; err != nil || text != want {
		t.Errorf("%q, %v; want %q", text, err, want)
	}
}
