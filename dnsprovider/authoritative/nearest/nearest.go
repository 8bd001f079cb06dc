// Package nearest says which regions are near an address, by a table of networks that the user keeps:
//
//	# network        regions, the nearest first
//	198.51.100.0/24  eu-west eu-central
//	2001:db8::/32    us-east
//	0.0.0.0/0        us-east eu-west
//
// Of the networks that hold an address the smallest counts.
//
// What was traded: the table is read once and kept in memory, about 100 bytes a network.
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
}

// Load reads a table from a file. Errors name the file and the line.
func Load(file string) (*Table, error) {
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

// Parse reads a table. It fails for a line that is no network and regions, for a network that comes
// twice, and for more than two million networks.
func Parse(r io.Reader) (*Table, error) {
	t, lists := &Table{}, map[string][]string{}
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
	network, err := netip.ParsePrefix(fields[0])
	switch {
	case err != nil || network != network.Masked() || network.Addr().Is4In6():
		return fmt.Errorf("network %q: must be an address and a length, without bits behind the length, as 198.51.100.0/24", fields[0])
	case len(fields) == 1:
		return fmt.Errorf("network %s: must have at least one region behind it", network)
	case t.networks.Size() == maxNetworks:
		return fmt.Errorf("network %s: must be one of at most %d", network, maxNetworks)
	}
	if _, twice := t.networks.Get(network); twice {
		return fmt.Errorf("network %s: must be there once", network)
	}
	key := strings.Join(fields[1:], " ")
	if lists[key] == nil {
		lists[key] = fields[1:]
	}
	t.networks.Insert(network, lists[key])
	return nil
}

// Near returns the regions near a client, the nearest first; nil when no network holds it. The list
// is not the caller's to change.
func (t *Table) Near(client netip.Addr) []string {
	regions, _ := t.networks.Lookup(client.Unmap())
	return regions
}
