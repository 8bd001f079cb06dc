package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// Where all listen: the backend, and the proxy under test.
const (
	backendPort              = 18080
	host                     = "www.example.test"
	plainAddress, tlsAddress = "127.0.0.1:18081", "127.0.0.1:18443"
)

// proxyUnderTest is one row.
type proxyUnderTest struct {
	name    string
	command func() *exec.Cmd
}

func (b *bench) proxies() []proxyUnderTest {
	dir := b.dir
	pem, backend := filepath.Join(dir, "both.pem"), net.JoinHostPort(clusterAddress(0), fmt.Sprint(backendPort))
	cores := runtime.NumCPU()
	return []proxyUnderTest{
		{"federation-lb", func() *exec.Cmd { return b.command() }},
		{"HAProxy", func() *exec.Cmd {
			return exec.Command("haproxy", "-db", "-f", b.write("haproxy.cfg", fmt.Sprintf(haproxyConfig, cores, plainAddress, tlsAddress, pem, host, backend)))
		}},
		{"nginx", func() *exec.Cmd {
			return exec.Command("nginx", "-c", b.write("nginx.conf", fmt.Sprintf(nginxConfig, cores, dir, backend, plainAddress, tlsAddress, host, pem)))
		}},
		{"Caddy", func() *exec.Cmd {
			c := exec.Command("caddy", "run", "--adapter", "caddyfile", "--config", b.write("Caddyfile", fmt.Sprintf(caddyConfig, plainAddress, host, backend, pem)))
			c.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
			return c
		}},
	}
}

// write writes a file into the folder of the run, and returns its name.
func (b *bench) write(name, text string) string {
	file := filepath.Join(b.dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		panic(err) // a folder of our own
	}
	return file
}

// clusterHeader of an answer names the cluster.
const clusterHeader = "X-Cluster"

// serveBackend answers with 1 KB, at the addresses of all clusters.
func serveBackend() error {
	body := make([]byte, 1024)
	failed := make(chan error)
	for n := range manyClusters {
		l, err := net.Listen("tcp", net.JoinHostPort(clusterAddress(n), fmt.Sprint(backendPort)))
		if err != nil {
			return err
		}
		server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1024")
			w.Header().Set(clusterHeader, clusterName(n))
			_, _ = w.Write(body) // who asked may be gone
		})}
		go func() { failed <- server.Serve(l) }()
	}
	return <-failed
}

// command of federation-lb, which serves what the federation has, with some more flags.
func (b *bench) command(flags ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(b.bin, "federation-lb"), "--kubeconfig", b.federation.kubeconfig(), "--http-bind-address", plainAddress, "--https-bind-address", tlsAddress, "--metrics-bind-address", "", "--service-bind-address", proxySide, "--service-ports", fmt.Sprint(streamPort), "--local-targets", clusterNetwork,
		"--max-connections", fmt.Sprint(2*slowClients), "--max-connections-per-client", fmt.Sprint(2*slowClients), "--drain-delay", "0s", "--drain-timeout", "1s")
	c.Args = append(c.Args, flags...)
	return c
}

// certificate is that of the host, and its key, in PEM.
type certificate struct{ public, private []byte }

// newCertificate makes one, and writes both into one file.
func newCertificate(dir string) (*certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	c := &certificate{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})}
	return c, os.WriteFile(filepath.Join(dir, "both.pem"), slices.Concat(c.public, c.private), 0o600)
}

const haproxyConfig = `
global
  maxconn 4000
  nbthread %d
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  option forwardfor
frontend f
  bind %s
  bind %s ssl crt %s no-tls-tickets
  use_backend b if { hdr(host) -i %s }
backend b
  http-reuse always
  server s %s
`

const nginxConfig = `
daemon off; worker_processes %d; error_log stderr; pid %s/nginx.pid;
events { worker_connections 4000; }
http {
  access_log off; client_body_temp_path %[2]s/1; proxy_temp_path %[2]s/2; fastcgi_temp_path %[2]s/3; uwsgi_temp_path %[2]s/4; scgi_temp_path %[2]s/5;
  keepalive_requests 100000000;
  upstream b { server %s; keepalive 128; keepalive_requests 100000000; }
  server {
    listen %s; listen %s ssl; server_name %s;
    ssl_certificate %s; ssl_certificate_key %[7]s; ssl_protocols TLSv1.2 TLSv1.3; ssl_session_tickets off; ssl_session_cache off;
    location / { proxy_pass http://b; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host; proxy_set_header X-Forwarded-For $remote_addr; }
  }
}
`

const caddyConfig = `
{
  admin off
  auto_https off
  log {
    level ERROR
  }
}
http://%s, http://%s:18081 {
  bind 127.0.0.1
  reverse_proxy %s
}
https://%[2]s:18443 {
  bind 127.0.0.1
  tls %[4]s %[4]s
  reverse_proxy %[3]s
}
`
