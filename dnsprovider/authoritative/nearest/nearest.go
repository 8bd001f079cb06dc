// Package nearest returns the regions near an address, by a table that the user keeps, and a database of places in MaxMind's
// format (GeoIP, .mmdb):
//
//	# network or place  regions, the nearest first
//	198.51.100.0/24     eu-west eu-central
//	2001:db8::/32       us-east
//	subdivision:US-CA   us-west
//	country:DE          eu-central eu-west
//	continent:EU        eu-west
//	0.0.0.0/0           us-east eu-west
//
// Of the networks that contain an address the smallest wins. Networks win over places; of places the smallest one in the table
// wins. The networks of all addresses, 0.0.0.0/0 and ::/0, come last.
//
// What was traded: both are read into memory, about 100 bytes per network of the table, and the whole database: its file may
// be replaced in place while it is in use.
package nearest

import (
	"bufio"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"

	"github.com/gaissmai/bart"
)

// maxNetworks bounds a table.
const maxNetworks = 2_000_000

// Table is a table of networks. It may be used by several goroutines.
type Table struct {
	networks bart.Table[[]string]
	// everywhere are the regions of the networks that hold all addresses, and places those of places.
	everywhere bart.Table[[]string]
	places     map[string][]string
}

// load reads a table from a file. Errors name the file and the line.
func load(file string) (*Table, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := Parse(f)
	if err != nil {
		return nil, fmt.Errorf("table of networks %s: %w", file, err)
	}
	return t, nil
}

// Parse reads a table. It fails for an invalid line, for a duplicate, and for more than two million lines.
func Parse(r io.Reader) (*Table, error) {
	t, lists := &Table{places: map[string][]string{}}, map[string][]string{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		if err := t.add(fields, lists); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	return t, lines.Err()
}

// add takes a line. Many lines have the same regions: lists keeps them once.
func (t *Table) add(fields []string, lists map[string][]string) error {
	if len(fields) == 1 {
		return fmt.Errorf("%s: must have at least one region behind it", fields[0])
	}
	if t.networks.Size()+len(t.places) == maxNetworks {
		return fmt.Errorf("%s: must be one of at most %d", fields[0], maxNetworks)
	}
	key := strings.Join(fields[1:], " ")
	if lists[key] == nil {
		lists[key] = fields[1:]
	}
	if of := place(fields[0]); of != "" {
		if t.places[of] != nil {
			return fmt.Errorf("place %s: must be there once", of)
		}
		t.places[of] = lists[key]
		return nil
	}
	return t.addNetwork(fields[0], lists[key])
}

func (t *Table) addNetwork(text string, regions []string) error {
	network, err := netip.ParsePrefix(text)
	if err != nil || network != network.Masked() || network.Addr().Is4In6() {
		return fmt.Errorf("%q: must be an address and a length, without bits behind the length, as 198.51.100.0/24, or a place, as country:DE, continent:EU or subdivision:US-CA", text)
	}
	into := &t.networks
	if network.Bits() == 0 {
		into = &t.everywhere
	}
	if _, twice := into.Get(network); twice {
		return fmt.Errorf("network %s: must be there once", network)
	}
	into.Insert(network, regions)
	return nil
}
