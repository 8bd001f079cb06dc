package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/spf13/pflag"

	"federation/cmd/internal/logformat"
	"federation/controllers/servicedns/lookup"
	"federation/dnsprovider"
	"federation/dnsprovider/authoritative/serverflags"
)

// options are the flags.
type options struct {
	log        logformat.Flag
	zone       string
	zoneFile   string
	kubeconfig string
	listen     string
	metrics    string
	server     serverflags.Flags
	lookups    lookup.Flags
	keyOptions
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.zone, "zone", "", "`NAME` of the zone (required)")
	fs.StringVar(&o.zoneFile, "zone-file", "", "master `FILE` with records of the zone")
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `FILE` of the federation whose zone it is")
	fs.StringVar(&o.listen, "listen", "127.0.0.1:5353", "`HOST:PORT` on which questions are answered, over UDP and TCP")
	fs.StringVar(&o.metrics, "metrics-bind-address", "", "`HOST:PORT` on which /metrics, /healthz and /readyz are served, without TLS; without it nowhere")
	o.server.Add(fs, "")
	o.lookups.Add(fs, "")
	o.keyOptions.addFlags(fs)
}

// validate makes the zone's name canonical. An error names the flag, its value and what is allowed.
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
	return o.lookups.Validate()
}

// addresses returns the addresses in a file's records.
func addresses(file []dnsprovider.RRSet) (all []netip.Addr) {
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
