package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/spf13/pflag"

	"federation/dnsprovider"
	"federation/dnsprovider/authoritative"
)

// options are the flags.
type options struct {
	zone        string
	zoneFile    string
	kubeconfig  string
	listen      string
	threads     int
	rateLimit   int
	networks    string
	nameServers []net.IP
	metrics     string
	keyOptions
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.zone, "zone", "", "`NAME` of the zone (required)")
	fs.StringVar(&o.zoneFile, "zone-file", "", "master `FILE` with records of the zone")
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `FILE` of the federation whose zone it is")
	fs.StringVar(&o.listen, "listen", "127.0.0.1:5353", "`HOST:PORT` on which questions are answered, over UDP and TCP")
	fs.IntVar(&o.threads, "threads", 0, "`NUMBER` of UDP sockets, each with a thread of its own; 0 is one for each processor")
	fs.IntVar(&o.rateLimit, "rate-limit", 1000, "`NUMBER` of answers a second that one network (/24, /56) gets over UDP of each class: with records, without, errors; what is more is told to ask over TCP or left out, but for clients with a valid cookie; -1 is no limit")
	fs.StringVar(&o.networks, "networks", "", "`FILE` with networks of clients and the regions near them, for names with the strategy Nearest; a line is \"198.51.100.0/24 REGION…\", the nearest region first")
	fs.IPSliceVar(&o.nameServers, "name-server-ips", nil, "`IP` addresses of the zone's name server ns.ZONE, as the delegation above the zone has them; without it those in the file, or that in --listen")
	fs.Lookup("name-server-ips").DefValue = ""
	fs.StringVar(&o.metrics, "metrics-bind-address", "", "`HOST:PORT` on which /metrics, /healthz and /readyz are served, without TLS; without it nowhere")
	o.keyOptions.addFlags(fs)
}

// validate names the flag, its value and what is allowed, and makes the zone's name canonical.
func (o *options) validate() error {
	if o.zone == "" {
		return errors.New("--zone is required: the name of the zone, as example.com")
	}
	zone, err := dnsprovider.CanonicalName(o.zone)
	if err != nil {
		return fmt.Errorf("--zone: %w", err)
	}
	o.zone = zone
	if o.kubeconfig == "" && o.zoneFile == "" {
		return errors.New("--kubeconfig or --zone-file is required: they say what is in the zone")
	}
	if _, _, err := net.SplitHostPort(o.listen); err != nil {
		return fmt.Errorf("--listen %q: must be HOST:PORT (%v)", o.listen, err)
	}
	if o.threads < 0 || o.threads > 1024 {
		return fmt.Errorf("--threads %d: must be from 0 to 1024", o.threads)
	}
	if o.rateLimit < -1 || o.rateLimit == 0 || o.rateLimit > authoritative.MaxRateLimit {
		return fmt.Errorf("--rate-limit %d: must be from 1 to %d, or -1 for none", o.rateLimit, authoritative.MaxRateLimit)
	}
	return nil
}

// addresses are those of the name server that the flag gives, or else the records of a file.
func (o *options) addresses(file []dnsprovider.RRSet) []netip.Addr {
	var all []netip.Addr
	for _, ip := range o.nameServers {
		if a, ok := netip.AddrFromSlice(ip); ok {
			all = append(all, a.Unmap())
		}
	}
	if len(all) > 0 {
		return all
	}
	for _, set := range file {
		if set.Type != dnsprovider.A && set.Type != dnsprovider.AAAA {
			continue
		}
		for _, data := range set.Rdata {
			all = append(all, netip.MustParseAddr(data))
		}
	}
	return all
}
