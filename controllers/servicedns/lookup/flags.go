package lookup

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/spf13/pflag"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/servicedns"
)

// Values of --host-lookups.
const (
	lookAll       = "All"
	lookValidated = "Validated"
	lookNone      = "None"
)

// Flags are the parsed flags. Register them with Add.
type Flags struct {
	prefix     string
	resolver   string
	hosts      string
	publicOnly bool
}

// Add adds the flags to fs. All their names begin with the prefix.
func (f *Flags) Add(fs *pflag.FlagSet, prefix string) {
	f.prefix = prefix
	fs.StringVar(&f.resolver, prefix+"resolver", "", "`ADDRESS` of the resolver that looks up host names of load balancers: tls://HOST[:PORT], asked over TLS, or IP:PORT of one on this machine; without it the machine's")
	fs.StringVar(&f.hosts, prefix+"host-lookups", lookAll, "`WHICH` answers about host names of load balancers are used: All; Validated: those that --"+prefix+"resolver validated by DNSSEC (AD); None: nothing is looked up, a name leads to one host by CNAME")
	fs.BoolVar(&f.publicOnly, prefix+"public-addresses-only", false, "use only addresses of load balancers that are reachable from all of the internet: not private ones, nor those for documentation, benchmarks and shared use")
}

// Validate returns an error that names the flag, its value and what is allowed.
func (f *Flags) Validate() error {
	switch f.hosts {
	case lookAll, lookNone:
	case lookValidated:
		if f.resolver == "" {
			return fmt.Errorf("--%shost-lookups %s: needs --%sresolver, which says what it validated", f.prefix, f.hosts, f.prefix)
		}
	default:
		return fmt.Errorf("--%shost-lookups %q: must be %s, %s or %s", f.prefix, f.hosts, lookAll, lookValidated, lookNone)
	}
	if _, err := newResolver(f.resolver, false); f.resolver != "" && err != nil {
		return fmt.Errorf("--%sresolver %q: %w", f.prefix, f.resolver, err)
	}
	return nil
}

// PublicOnly reports whether private addresses are not used.
func (f *Flags) PublicOnly() bool { return f.publicOnly }

// Refuse returns a function that returns an error for load balancer addresses that are not used.
func (f *Flags) Refuse() func(netip.Addr) error {
	if f.publicOnly {
		return v1beta1.RefuseAllButPublicAddresses
	}
	return v1beta1.RefuseAddress
}

// Fill sets the options that the flags control. The flags must be valid.
func (f *Flags) Fill(o *servicedns.Options) {
	o.Refuse = f.Refuse()
	switch {
	case f.hosts == lookNone:
		o.Resolver = none{}
	case f.resolver != "":
		o.Resolver, _ = newResolver(f.resolver, f.hosts == lookValidated)
	}
}

// none resolves every host to no address.
type none struct{}

// LookupNetIP implements servicedns.Resolver.
func (none) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) { return nil, nil }
