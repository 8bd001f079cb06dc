package serverflags

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"federation/dnsprovider/authoritative"
	"federation/dnsprovider/authoritative/nearest"
)

// Flags are the parsed flags. Fill reads the files that they name.
type Flags struct {
	prefix       string
	threads      int
	rateLimit    int
	nameServers  []net.IP
	networks     string
	geoip        string
	nsid         string
	cookieSecret string
	queryLog     string
	tls          tlsFlags
	transfers    transferFlags
	locator      *nearest.Locator
}

// Add adds the flags to fs. All their names begin with the prefix.
func (f *Flags) Add(fs *pflag.FlagSet, prefix string) {
	f.prefix = prefix
	fs.IntVar(&f.threads, prefix+"threads", 0, "`NUMBER` of UDP sockets of the DNS server, each with a thread of its own; 0 is one for each processor")
	fs.IntVar(&f.rateLimit, prefix+"rate-limit", 100, "`NUMBER` of answers a second that one network (/24, /56) gets over UDP of each class: with records, without, errors; one counts once for each 512 bytes; beyond that, half get none and half are told to ask over TCP, except clients with a valid cookie; -1 is no limit")
	fs.IPSliceVar(&f.nameServers, prefix+"name-server-ips", nil, "`IP` addresses of the zone's name server ns.ZONE, as the delegation above the zone has them; without it those in a zone file, or that at which the server listens")
	fs.StringVar(&f.networks, prefix+"networks", "", "`FILE` with networks of clients and the regions near them, for names with the strategy Nearest; a line is \"198.51.100.0/24 REGION…\", the nearest region first; read again when it changes")
	fs.StringVar(&f.geoip, prefix+"geoip-database", "", "`FILE` in MaxMind's format (.mmdb) that says in which place an address is; --"+prefix+"networks then has lines for places too: \"country:DE REGION…\", \"continent:EU …\", \"subdivision:US-CA …\"; read again when it changes")
	fs.StringVar(&f.nsid, prefix+"nsid", "", "`TEXT` that tells this server from others of the zone, for who asks (NSID, RFC 5001)")
	fs.StringVar(&f.cookieSecret, prefix+"cookie-secret-file", "", "`FILE` with the secret of the cookies (RFC 9018), 32 hexadecimal digits; servers that share an address share it. A second line has the secret before it, whose cookies are still taken. Without it a random one, another each day")
	fs.StringVar(&f.queryLog, prefix+"query-log", "", "`FILE` to which a line of JSON is added for each question, - for the standard error; without it none")
	f.tls.add(fs, prefix)
	f.transfers.add(fs, prefix)
	fs.Lookup(prefix + "name-server-ips").DefValue = "" // pflag shows "[]" for an empty list of addresses
}

// Fill sets the options that the flags control. Errors name the flag, its value and what is allowed.
func (f *Flags) Fill(o *authoritative.Options) error {
	switch {
	case f.threads < 0 || f.threads > 1024:
		return fmt.Errorf("--%sthreads %d: must be from 0 to 1024", f.prefix, f.threads)
	case f.rateLimit < -1 || f.rateLimit == 0 || f.rateLimit > authoritative.MaxRateLimit:
		return fmt.Errorf("--%srate-limit %d: must be from 1 to %d, or -1 for none", f.prefix, f.rateLimit, authoritative.MaxRateLimit)
	case len(f.nsid) > 128:
		return fmt.Errorf("--%snsid: %d bytes: must be at most 128", f.prefix, len(f.nsid))
	}
	o.Threads, o.RateLimit, o.NSID = f.threads, f.rateLimit, f.nsid
	for _, ip := range f.nameServers {
		if a, ok := netip.AddrFromSlice(ip); ok {
			o.NameServers = append(o.NameServers, a.Unmap())
		}
	}
	for name, read := range map[string]func(*authoritative.Options) error{
		"networks": f.readNetworks, "cookie-secret-file": f.readCookieSecret, "query-log": f.openQueryLog,
	} {
		if err := read(o); err != nil {
			return fmt.Errorf("--%s%s: %w", f.prefix, name, err)
		}
	}
	if err := f.tls.fill(o, f.prefix); err != nil {
		return err
	}
	return f.transfers.fill(o, f.prefix)
}

func (f *Flags) readNetworks(o *authoritative.Options) (err error) {
	switch {
	case f.networks == "" && f.geoip != "":
		return fmt.Errorf("must be beside --%sgeoip-database: it says which regions are near a place", f.prefix)
	case f.networks == "":
		return nil
	}
	if f.locator, err = nearest.Open(f.networks, f.geoip); err != nil {
		return err
	}
	o.Locator = f.locator
	return nil
}

func (f *Flags) readCookieSecret(o *authoritative.Options) error {
	if f.cookieSecret == "" {
		return nil
	}
	text, err := os.ReadFile(f.cookieSecret)
	if err != nil {
		return err
	}
	lines := strings.Fields(string(text))
	if len(lines) < 1 || len(lines) > 2 {
		return fmt.Errorf("must have one line or two, and has %d", len(lines))
	}
	for i, to := range []*authoritative.CookieSecret{&o.CookieSecret, &o.PreviousCookieSecret}[:len(lines)] {
		secret, err := hex.DecodeString(lines[i])
		if err != nil || len(secret) != len(to) {
			return fmt.Errorf("line %d must have 32 hexadecimal digits, as \"openssl rand -hex 16\" gives them", i+1)
		}
		*to = authoritative.CookieSecret(secret)
	}
	return nil
}

// openQueryLog opens the file for as long as the process lives.
func (f *Flags) openQueryLog(o *authoritative.Options) error {
	if f.queryLog == "" {
		return nil
	}
	to := os.Stderr
	if f.queryLog != "-" {
		var err error
		if to, err = os.OpenFile(f.queryLog, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
			return err
		}
	}
	o.QueryLog = slog.New(slog.NewJSONHandler(to, nil))
	return nil
}

// Follow reads files again when they change, until ctx ends. A file that cannot be read is logged, and changes nothing.
func (f *Flags) Follow(ctx context.Context) {
	if f.locator != nil {
		f.locator.Follow(ctx, func(err error) { slog.Error("Which regions are near whom stays as it was", "err", err) })
	}
}
