package fleettest

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"

	"federation/controllers/drill/plan"
	"federation/dnsprovider"
)

// zone is the DNS zone of the fleet.
const zone = "example.com."

// DNS is a provider with one zone, in memory.
type DNS struct {
	mu      sync.Mutex
	records []dnsprovider.RRSet
	applied int
}

// Records implements dnsprovider.Provider.
func (d *DNS) Records(context.Context, string) ([]dnsprovider.RRSet, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.records), nil
}

// data has the data of all records.
func (d *DNS) data() map[plan.Record][]string {
	sets, _ := d.Records(context.Background(), zone) // there is no error
	data := make(map[plan.Record][]string, len(sets))
	for i := range sets {
		data[plan.Record{Name: sets[i].Name, Type: string(sets[i].Type)}] = sets[i].Rdata
	}
	return data
}

// Apply implements dnsprovider.Provider.
func (d *DNS) Apply(_ context.Context, _ string, changes dnsprovider.ChangeSet) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	next, err := changes.Apply(d.records)
	if err != nil {
		return err
	}
	if len(changes) > 0 {
		d.applied++
	}
	d.records = next
	return nil
}

// Applied counts the calls that changed something.
func (d *DNS) Applied() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.applied
}

// noResolver finds no host names: load balancers have addresses here.
type noResolver struct{}

// LookupNetIP implements servicedns.Resolver.
func (noResolver) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, errors.New("no such host")
}
