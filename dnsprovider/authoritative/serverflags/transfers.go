package serverflags

import (
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"federation/dnsprovider/authoritative"
)

// transferFlags configure who may transfer the zone.
type transferFlags struct {
	keys             string
	networks, notify []string
}

func (f *transferFlags) add(fs *pflag.FlagSet, prefix string) {
	fs.StringVar(&f.keys, prefix+"transfer-key-file", "", "`FILE` with TSIG keys, one a line as ALGORITHM:NAME:SECRET; servers that have one may transfer the zone, and nobody else")
	fs.StringSliceVar(&f.networks, prefix+"transfer-networks", nil, "`NETWORK`s from which the zone may be transferred, with a key; without it any")
	fs.StringSliceVar(&f.notify, prefix+"notify", nil, "`IP:PORT` of servers that are told when the zone changes, with the first key of --"+prefix+"transfer-key-file")
}

func (f *transferFlags) fill(o *authoritative.Options, prefix string) error {
	if f.keys == "" {
		if len(f.notify)+len(f.networks) > 0 {
			return fmt.Errorf("--%[1]snotify and --%[1]stransfer-networks need --%[1]stransfer-key-file: nobody gets the zone without a key", prefix)
		}
		return nil
	}
	if err := f.readKeys(&o.Transfers); err != nil {
		return fmt.Errorf("--%stransfer-key-file: %w", prefix, err)
	}
	for _, text := range f.networks {
		network, err := netip.ParsePrefix(text)
		if err != nil || network != network.Masked() {
			return fmt.Errorf("--%stransfer-networks %q: must be an address and a length, without bits behind the length, as 198.51.100.0/24", prefix, text)
		}
		o.Transfers.Networks = append(o.Transfers.Networks, network)
	}
	for _, text := range f.notify {
		address, err := netip.ParseAddrPort(text)
		if err != nil {
			return fmt.Errorf("--%snotify %q: must be IP:PORT", prefix, text)
		}
		o.Transfers.Notify = append(o.Transfers.Notify, address)
	}
	return nil
}

func (f *transferFlags) readKeys(t *authoritative.Transfers) error {
	text, err := os.ReadFile(f.keys)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		key, err := authoritative.ParseKey(line)
		if err != nil {
			return fmt.Errorf("%s: %w", f.keys, err)
		}
		t.Keys = append(t.Keys, key)
	}
	if len(t.Keys) == 0 {
		return fmt.Errorf("%s: must have at least one key", f.keys)
	}
	return nil
}
