package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"federation/cmd/internal/logformat"
	"federation/controllers/loadbalancer/plan"
	"federation/controllers/servicedns/lookup"
)

// options are the flags.
type options struct {
	log           logformat.Flag
	kubeconfig    string
	name          string
	addresses     []string
	region        string
	zone          string
	http, https   string
	serviceHost   string
	servicePorts  string
	serviceMode   string
	serviceIdle   time.Duration
	proxyProtocol bool
	trusted       []string
	local         []string
	upstreamCA    string
	accessLog     string
	connections   int
	ofClient      int
	drainDelay    time.Duration
	drainTimeout  time.Duration
	metrics       string
	lookups       lookup.Flags

	peers []netip.Prefix
	// localTargets is of local.
	localTargets []netip.Prefix
	own          []netip.Addr
	ports        plan.PortRanges
	roots        *x509.CertPool
}

func newOptions() *options {
	name, _ := os.Hostname() // without one --name is required
	return &options{name: strings.ToLower(name), http: ":80", https: ":443", connections: 10_000, ofClient: 1000, serviceMode: userspaceMode, serviceIdle: time.Hour, drainDelay: 15 * time.Second, drainTimeout: time.Minute}
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `FILE` of the federation (required)")
	fs.StringVar(&o.name, "name", o.name, "`NAME` of the load balancer, which no other one has: of its Lease; the host's by default")
	fs.StringSliceVar(&o.addresses, "addresses", nil, "`ADDRESSES` that clients reach it at, the status of Ingresses and DNS answer with them while it lives; without it neither knows of it")
	fs.StringVar(&o.region, "region", "", "`NAME` of the region that it is in, as the clusters' nodes have it: clusters of this region come first; without it all are alike")
	fs.StringVar(&o.zone, "zone", "", "`NAME` of the zone that it is in")
	fs.StringVar(&o.http, "http-bind-address", o.http, "`HOST:PORT` for HTTP; empty: none")
	fs.StringVar(&o.https, "https-bind-address", o.https, "`HOST:PORT` for HTTPS, with the certificates that Ingresses name; empty: none")
	fs.StringVar(&o.servicePorts, "service-ports", "", "`PORTS` at which Services of the class are served (layer 4), as 5432,9000-9100; empty: none. Whoever may create Services has their choice of them, the first one each")
	fs.StringVar(&o.serviceHost, "service-bind-address", "", "`ADDRESS` at which --service-ports are served; empty: all")
	fs.StringVar(&o.serviceMode, "service-proxy-mode", o.serviceMode, "`MODE` in which connections to --service-ports are passed on: userspace; or nftables, by the kernel, which takes CAP_NET_ADMIN, less CPU time, and UDP, too")
	fs.DurationVar(&o.serviceIdle, "service-idle-timeout", o.serviceIdle, "how long nothing may move on a connection to a Service, or on one whose TLS is passed on, until it is closed")
	fs.BoolVar(&o.proxyProtocol, "proxy-protocol", false, "each connection begins with a header of PROXY protocol v2, from one of --trusted-peers")
	fs.StringSliceVar(&o.trusted, "trusted-peers", nil, "`NETWORKS` in CIDR notation whose X-Forwarded-For, Forwarded and PROXY headers are believed; those of others are replaced")
	fs.StringSliceVar(&o.local, "local-targets", nil, "`NETWORKS` in CIDR notation whose addresses may be clusters' load balancers though this machine has them; without it, and outside of them, connections to the machine itself are not made")
	fs.StringVar(&o.upstreamCA, "upstream-ca-file", "", "`FILE` with the certificate authorities of clusters whose Services have appProtocol https; without it the system's")
	fs.StringVar(&o.accessLog, "access-log", "", "`FILE` that gets a line of JSON for each request, and each connection that is passed on; -: the standard output")
	fs.IntVar(&o.connections, "max-connections", o.connections, "open connections of clients on each port, and on --service-ports together; further ones are closed at once")
	fs.IntVar(&o.ofClient, "max-connections-per-client", o.ofClient, "open connections of one client on each port, and on --service-ports together (of IPv6: of one /64), unless it is one of --trusted-peers")
	fs.DurationVar(&o.drainDelay, "drain-delay", o.drainDelay, "how long connections are still taken after SIGTERM, while clients are told to close theirs: longer than the TTL of its names")
	fs.DurationVar(&o.drainTimeout, "drain-timeout", o.drainTimeout, "how long requests under way and WebSockets may take after that")
	fs.StringVar(&o.metrics, "metrics-bind-address", "127.0.0.1:9154", "`HOST:PORT` on which /metrics, /healthz, /readyz, and /trace for \"federation-lb trace\" are served, without TLS; empty: nowhere")
	o.lookups.Add(fs, "")
}

// validate names the flag, its value and what is allowed. It reads the file of --upstream-ca-file.
func (o *options) validate() error {
	if o.kubeconfig == "" {
		return errors.New("--kubeconfig is required: it says which federation is served")
	}
	if o.http == "" && o.https == "" {
		return errors.New("--http-bind-address, --https-bind-address: one of them must be given")
	}
	for flag, address := range map[string]string{"http-bind-address": o.http, "https-bind-address": o.https, "metrics-bind-address": o.metrics} {
		if _, _, err := net.SplitHostPort(address); address != "" && err != nil {
			return fmt.Errorf("--%s %q: must be HOST:PORT (%v)", flag, address, err)
		}
	}
	if err := o.validateAddresses(); err != nil {
		return err
	}
	for _, l := range []struct {
		flag  string
		texts []string
		into  *[]netip.Prefix
	}{{"trusted-peers", o.trusted, &o.peers}, {"local-targets", o.local, &o.localTargets}} {
		for _, text := range l.texts {
			network, err := netip.ParsePrefix(text)
			if err != nil {
				return fmt.Errorf("--%s %q: must be networks in CIDR notation, as 10.0.0.0/8", l.flag, text)
			}
			*l.into = append(*l.into, network.Masked())
		}
	}
	if o.proxyProtocol && len(o.peers) == 0 {
		return errors.New("--proxy-protocol needs --trusted-peers: whoever could send such a header could be anybody")
	}
	if o.connections < 1 || o.ofClient < 1 {
		return fmt.Errorf("--max-connections %d, --max-connections-per-client %d: must be 1 or more", o.connections, o.ofClient)
	}
	if err := o.validateServices(); err != nil {
		return err
	}
	if o.drainDelay < 0 || o.drainTimeout < 0 {
		return fmt.Errorf("--drain-delay %s, --drain-timeout %s: must not be negative", o.drainDelay, o.drainTimeout)
	}
	if o.upstreamCA != "" {
		text, err := os.ReadFile(o.upstreamCA)
		if err != nil {
			return fmt.Errorf("--upstream-ca-file: %w", err)
		}
		if o.roots = x509.NewCertPool(); !o.roots.AppendCertsFromPEM(text) {
			return fmt.Errorf("--upstream-ca-file %s: must have certificates in PEM", o.upstreamCA)
		}
	}
	return o.lookups.Validate()
}

// validateServices checks how Services are served.
func (o *options) validateServices() (err error) {
	if o.ports, err = plan.ParsePortRanges(o.servicePorts); err != nil {
		return fmt.Errorf("--service-ports %w", err)
	}
	if o.serviceHost != "" {
		if _, err := netip.ParseAddr(o.serviceHost); err != nil {
			return fmt.Errorf("--service-bind-address %q: must be an IP address", o.serviceHost)
		}
	}
	for flag, address := range map[string]string{"http-bind-address": o.http, "https-bind-address": o.https, "metrics-bind-address": o.metrics} {
		_, text, _ := net.SplitHostPort(address) // it has been checked
		if port, err := strconv.ParseUint(text, 10, 16); err == nil && o.ports.Has(int32(port)) {
			return fmt.Errorf("--service-ports %q: must not have port %d, which is that of --%s", o.servicePorts, port, flag)
		}
	}
	if err := o.validateMode(); err != nil {
		return err
	}
	if o.serviceIdle < minServiceIdle {
		return fmt.Errorf("--service-idle-timeout %s: must be %s or more", o.serviceIdle, minServiceIdle)
	}
	return nil
}

// validateMode checks what the kernel cannot do.
func (o *options) validateMode() error {
	switch {
	case o.serviceMode != userspaceMode && o.serviceMode != nftablesMode:
		return fmt.Errorf("--service-proxy-mode %q: must be %s or %s", o.serviceMode, userspaceMode, nftablesMode)
	case o.serviceMode == nftablesMode && o.proxyProtocol:
		return errors.New("--service-proxy-mode nftables: must be userspace with --proxy-protocol, whose headers the kernel does not read")
	case o.serviceMode == nftablesMode && len(o.local) > 0 && o.serviceHost == "":
		return errors.New("--service-proxy-mode nftables: needs --service-bind-address with --local-targets, to which connections would be taken for those of clients")
	}
	return nil
}

// minServiceIdle is the least --service-idle-timeout.
const minServiceIdle = 10 * time.Second

// validateAddresses checks what the load balancer says of itself.
func (o *options) validateAddresses() error {
	if errs := validation.IsDNS1123Subdomain(o.name); len(errs) > 0 {
		return fmt.Errorf("--name %q: %s", o.name, errs[0])
	}
	refuse := o.lookups.Refuse()
	for _, text := range o.addresses {
		a, err := netip.ParseAddr(text)
		if err == nil {
			err = refuse(a)
		}
		if err != nil {
			return fmt.Errorf("--addresses %q: must be an IP address that clients can reach (%v)", text, err)
		}
		o.own = append(o.own, a)
	}
	if len(o.own) > maxAddresses {
		return fmt.Errorf("--addresses: %d addresses: must be at most %d", len(o.own), maxAddresses)
	}
	return nil
}

// maxAddresses bounds the addresses of a load balancer.
const maxAddresses = 16
