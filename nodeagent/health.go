package nodeagent

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"federation/nodeagent/ruleset"
)

// late is how long a change may wait for the kernel before the agent calls itself unhealthy, as kube-proxy's.
const late = 2 * time.Minute

// Health answers load balancers: at health check node ports whether this node has endpoints of a Service, and at
// /healthz whether the agent keeps up. /readyz is for the kubelet.
type Health struct {
	mu       sync.Mutex
	since    time.Time // that something waits to be written; zero: nothing does
	last     time.Time // that something was written
	dark     time.Time // until then load balancers must send nothing here
	lease    bool      // the Lease of drills is waited for
	services map[ruleset.Key]*checked
}

// healthCheck is the answer at a health check node port.
type healthCheck struct {
	port      uint16 // 0: nothing
	endpoints int    // ready ones on this node
}

type checked struct {
	healthCheck
	server *http.Server
}

func newHealth() *Health { return &Health{services: map[ruleset.Key]*checked{}} }

// checkOf returns the health check of a Service's Ports: the addresses of all ready endpoints on this node.
func checkOf(ports []*ruleset.Port) healthCheck {
	c, addrs := healthCheck{}, map[netip.Addr]bool{}
	for _, p := range ports {
		c.port = p.HealthCheckNodePort
		if p.Local.Tier == ruleset.TierNode {
			for _, b := range p.Local.Backends {
				addrs[b.Addr.Addr()] = true
			}
		}
	}
	c.endpoints = len(addrs)
	return c
}

func (h *Health) queued() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since.IsZero() {
		h.since = time.Now()
	}
}

func (h *Health) written() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.since, h.last = time.Time{}, time.Now()
}

// setDark has health check node ports answer 503 until a time.
func (h *Health) setDark(until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dark = until
}

// awaitLease makes /readyz wait until sawLease is called: the federation takes a ready agent for one that obeys the
// Lease of drills.
func (h *Health) awaitLease() { h.setLease(true) }

func (h *Health) sawLease() { h.setLease(false) }

func (h *Health) setLease(waits bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lease = waits
}

func (h *Health) healthy() bool { return h.since.IsZero() || time.Since(h.since) < late }

// set starts, changes and ends the answers at node ports.
func (h *Health) set(checks map[ruleset.Key]healthCheck) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for k, c := range checks {
		if old := h.services[k]; old != nil && old.port != c.port {
			old.close()
			delete(h.services, k)
		}
	}
	for k, c := range checks {
		if c.port == 0 {
			continue
		}
		if h.services[k] == nil {
			h.services[k] = &checked{server: h.serve(k, c.port)}
		}
		h.services[k].healthCheck = c
	}
}

// serve answers at a health check node port; nil if another process has it.
func (h *Health) serve(k ruleset.Key, port uint16) *http.Server {
	l, err := net.Listen("tcp", ":"+strconv.Itoa(int(port)))
	if err != nil {
		klog.ErrorS(err, "Cannot listen at the health check node port of a Service", "service", k, "port", port)
		return nil
	}
	s := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h.answer(w, k)
	})}
	go func() { _ = s.Serve(l) }() // ends with an error when it is closed
	return s
}

// answer answers as kube-proxy does: 200 if there are endpoints, else 503; their number in a header and the body.
func (h *Health) answer(w http.ResponseWriter, k ruleset.Key) {
	h.mu.Lock()
	count, healthy := 0, h.healthy()
	dark := time.Now().Before(h.dark)
	if s := h.services[k]; s != nil {
		count = s.endpoints
	}
	h.mu.Unlock()
	w.Header().Set("X-Load-Balancing-Endpoint-Weight", strconv.Itoa(count))
	respond(w, count > 0 && healthy && !dark, map[string]any{
		"service":        map[string]string{"namespace": k.Namespace, "name": k.Name},
		"localEndpoints": count, "serviceProxyHealthy": healthy,
	})
}

// ServeHTTP answers /healthz: 200 while changes get into the kernel in time, else 503.
func (h *Health) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h.mu.Lock()
	healthy, last := h.healthy(), h.last
	h.mu.Unlock()
	if healthy {
		last = time.Now() // as kube-proxy: healthy means up to date
	}
	respond(w, healthy, map[string]any{"lastUpdated": last, "currentTime": time.Now(), "healthy": healthy})
	healthzAnswers.WithLabelValues(fmt.Sprint(statusCode(healthy))).Inc()
}

// Ready answers /readyz: 200 once all rules have been written, and the Lease of drills has been seen if one is
// required, as long as /healthz has 200, too; else 503. kube-proxy's /healthz, and so ours, is 200 before the first
// rules.
func (h *Health) Ready(w http.ResponseWriter, _ *http.Request) {
	h.mu.Lock()
	ready, last := h.healthy() && !h.last.IsZero() && !h.lease, h.last
	h.mu.Unlock()
	respond(w, ready, map[string]any{"lastUpdated": last, "ready": ready})
}

func respond(w http.ResponseWriter, ok bool, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(statusCode(ok))
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}

func statusCode(ok bool) int {
	if ok {
		return http.StatusOK
	}
	return http.StatusServiceUnavailable
}

func (h *Health) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.services {
		s.close()
	}
}

func (c *checked) close() {
	if c.server != nil {
		_ = c.server.Close() // nothing is left to do with a listener that does not close
	}
}
