package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/loadbalancer/plan"
	"federation/controllers/loadbalancer/proxy"
	servicednsplan "federation/controllers/servicedns/plan"
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

func proxies(self, dir string) []proxyUnderTest {
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			panic(err) // a folder of our own
		}
		return file
	}
	pem := filepath.Join(dir, "both.pem")
	cores := runtime.NumCPU()
	return []proxyUnderTest{
		{"federation-lb", func() *exec.Cmd { return exec.Command(self, "--serve", "ours", "--dir", dir) }},
		{"HAProxy", func() *exec.Cmd {
			return exec.Command("haproxy", "-db", "-f", write("haproxy.cfg", fmt.Sprintf(haproxyConfig, cores, plainAddress, tlsAddress, pem, host, backendPort)))
		}},
		{"nginx", func() *exec.Cmd {
			return exec.Command("nginx", "-c", write("nginx.conf", fmt.Sprintf(nginxConfig, cores, dir, backendPort, plainAddress, tlsAddress, host, pem)))
		}},
		{"Caddy", func() *exec.Cmd {
			c := exec.Command("caddy", "run", "--adapter", "caddyfile", "--config", write("Caddyfile", fmt.Sprintf(caddyConfig, plainAddress, host, backendPort, pem)))
			c.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
			return c
		}},
	}
}

// serveBackend answers with 1 KB, at the addresses of all clusters.
func serveBackend() error {
	body := make([]byte, 1024)
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1024")
		_, _ = w.Write(body) // who asked may be gone
	})}
	failed := make(chan error)
	for c := range manyClusters {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.%d:%d", c+1, backendPort))
		if err != nil {
			return err
		}
		go func() { failed <- server.Serve(l) }()
	}
	return <-failed
}

// serveOurs is federation-lb without a federation: its proxy with one route, as a cluster at the backend's address.
func serveOurs(dir string) error {
	proxy.CollectSeldom()
	p := proxy.New(proxy.Options{Refuse: func(netip.Addr) error { return nil }})
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: backendPort}}}}
	table := plan.Routes(plan.World{Services: map[string]*corev1.Service{"shop/web": service}, Ingresses: []*networkingv1.Ingress{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: networkingv1.IngressSpec{
			IngressClassName: new(v1beta1.IngressClassName), TLS: []networkingv1.IngressTLS{{SecretName: "cert"}},
			Rules: []networkingv1.IngressRule{{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
				Path: "/", PathType: new(networkingv1.PathTypePrefix), Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: backendPort}}},
			}}}}}},
		},
	}}})
	pem := filepath.Join(dir, "both.pem")
	cert, err := tls.LoadX509KeyPair(pem, pem)
	if err != nil {
		return err
	}
	p.SetPool(plan.PoolInput{ID: plan.PoolID{Namespace: "shop", Service: "web", Port: backendPort}, Service: service, Offers: []servicednsplan.Offer{
		{Cluster: "east-a", Weight: 100, Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}},
	}})
	p.SetRoutes(table, map[string]*tls.Certificate{"shop/cert": &cert})
	go p.Run(context.Background())
	failed := make(chan error)
	for _, o := range []proxy.ListenOptions{{Address: plainAddress}, {Address: tlsAddress, TLS: true}} {
		o.MaxConnections, o.MaxOfClient = 10_000, 10_000
		s, err := p.Listen(context.Background(), o)
		if err != nil {
			return err
		}
		go func() { failed <- s.Serve() }()
	}
	return <-failed
}

// writeCertificate writes a certificate and its key into one file, and returns the certificate in PEM.
func writeCertificate(dir string) ([]byte, error) {
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
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	both := append(append([]byte{}, cert...), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	return cert, os.WriteFile(filepath.Join(dir, "both.pem"), both, 0o600)
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
  server s 127.0.0.1:%d
`

const nginxConfig = `
daemon off; worker_processes %d; error_log stderr; pid %s/nginx.pid;
events { worker_connections 4000; }
http {
  access_log off; client_body_temp_path %[2]s/1; proxy_temp_path %[2]s/2; fastcgi_temp_path %[2]s/3; uwsgi_temp_path %[2]s/4; scgi_temp_path %[2]s/5;
  keepalive_requests 100000000;
  upstream b { server 127.0.0.1:%d; keepalive 128; keepalive_requests 100000000; }
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
  reverse_proxy 127.0.0.1:%d
}
https://%[2]s:18443 {
  bind 127.0.0.1
  tls %[4]s %[4]s
  reverse_proxy 127.0.0.1:%[3]d
}
`
