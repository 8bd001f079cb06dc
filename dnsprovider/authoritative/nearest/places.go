package nearest

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"

	"github.com/oschwald/maxminddb-golang/v2"
)

// placeKinds are the kinds of places that a table may name, and what of a database's record has their code.
var placeKinds = map[string][]any{
	"subdivision": {"subdivisions", 0, "iso_code"}, // behind the country's code: US-CA
	"country":     {"country", "iso_code"},
	"continent":   {"continent", "code"},
}

// place reads KIND:CODE; "" for what is none.
func place(text string) string {
	kind, code, _ := strings.Cut(text, ":")
	if placeKinds[kind] == nil || code == "" {
		return ""
	}
	return kind + ":" + strings.ToUpper(code)
}

// places is a database of places in MaxMind's format, with a table's regions of each. It may be used by several goroutines.
type places struct {
	reader *maxminddb.Reader
	table  *Table
	// known are the regions of the records that were asked for, by where they are in the database: so that no question
	// costs memory. There are no more than the database has.
	mu    sync.RWMutex
	known map[uintptr][]string
}

// openPlaces reads a database into memory: it may be replaced meanwhile. It fails for one that has no countries.
func openPlaces(file string, table *Table) (*places, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	reader, err := maxminddb.OpenBytes(content)
	if err != nil {
		return nil, fmt.Errorf("database of places %s: must be in MaxMind's format (.mmdb): %w", file, err)
	}
	return &places{reader: reader, table: table, known: map[uintptr][]string{}}, nil
}

// near returns the regions of the smallest place that has any.
func (p *places) near(client netip.Addr) []string {
	found := p.reader.Lookup(client)
	if !found.Found() {
		return nil
	}
	p.mu.RLock()
	regions, ok := p.known[found.Offset()]
	p.mu.RUnlock()
	if ok {
		return regions
	}
	regions = p.read(found)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known[found.Offset()] = regions
	return regions
}

func (p *places) read(found maxminddb.Result) []string {
	code := func(kind string) (text string) {
		_ = found.DecodePath(&text, placeKinds[kind]...) // what a record does not have is ""
		return strings.ToUpper(text)
	}
	country := code("country")
	for _, of := range []string{"subdivision:" + country + "-" + code("subdivision"), "country:" + country, "continent:" + code("continent")} {
		if regions := p.table.places[of]; regions != nil {
			return regions
		}
	}
	return nil
}
