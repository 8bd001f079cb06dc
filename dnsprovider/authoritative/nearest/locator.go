package nearest

import (
	"context"
	"fmt"
	"net/netip"
	"sync/atomic"

	"federation/dnsprovider/filechange"
)

// Locator returns the regions near an address. Make it with Open. It is safe for concurrent use.
type Locator struct {
	networks, database string
	watched            *filechange.Watcher
	current            atomic.Pointer[content]
}

// content is what was in the files.
type content struct {
	table *Table
	// places is nil where there is no database.
	places *places
}

// Open reads a table and, if the name is not "", a database. It fails if one cannot be read, or if the table names
// places without a database, or the other way round. Errors name the file.
func Open(networks, database string) (*Locator, error) {
	l := &Locator{networks: networks, database: database, watched: filechange.Watch(networks, database)}
	return l, l.read()
}

func (l *Locator) read() error {
	table, err := load(l.networks)
	if err != nil {
		return err
	}
	now := &content{table: table}
	if (len(table.places) > 0) != (l.database != "") {
		return fmt.Errorf("table of networks %s: has %d places: there must be some if there is a database of them, and none without", l.networks, len(table.places))
	}
	if l.database != "" {
		if now.places, err = openPlaces(l.database, table); err != nil {
			return err
		}
	}
	l.current.Store(now)
	return nil
}

// Follow reads both files again when one has changed, until ctx ends. If that fails, it keeps the old content and calls
// failed.
func (l *Locator) Follow(ctx context.Context, failed func(error)) {
	l.watched.Follow(ctx, nil, func() {
		if err := l.read(); err != nil {
			failed(err)
		}
	})
}

// Near returns the regions near a client, the nearest first; nil if nothing is known. The caller must not change the
// list.
func (l *Locator) Near(client netip.Addr) []string {
	now, client := l.current.Load(), client.Unmap()
	if regions, ok := now.table.networks.Lookup(client); ok {
		return regions
	}
	if now.places != nil {
		if regions := now.places.near(client); regions != nil {
			return regions
		}
	}
	regions, _ := now.table.everywhere.Lookup(client)
	return regions
}
