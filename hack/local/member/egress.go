package main

import (
	"net"
	"net/http"
	"os"
	"time"

	"federation/hack/forward"
)

// egressFile has the API server, which is outside of the network of kubelets and pods, reach kubelets, and webhooks in pods, through a
// proxy on a socket.
const (
	egressFile   = "egress.yaml"
	egressSocket = "egress.sock"
	egressConfig = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport: {uds: {udsName: ` + egressSocket + `}}
`
)

// serveEgress serves that proxy until the process ends.
func (n *internet) serveEgress() error {
	if err := os.WriteFile(egressFile, []byte(egressConfig), 0o600); err != nil {
		return err
	}
	if err := os.Remove(egressSocket); err != nil && !os.IsNotExist(err) {
		return err
	}
	l, err := net.Listen("unix", egressSocket)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: http.HandlerFunc(n.connect), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(l) }()
	return nil
}

// connect serves one CONNECT request (RFC 9110, 9.3.6).
func (n *internet) connect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "only CONNECT is served", http.StatusMethodNotAllowed)
		return
	}
	var out net.Conn
	err := n.inside(func() (err error) { out, err = net.DialTimeout("tcp4", r.Host, 10*time.Second); return err })
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.WriteHeader(http.StatusOK)
	in, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		out.Close()
		return
	}
	forward.Join(in, out)
}
