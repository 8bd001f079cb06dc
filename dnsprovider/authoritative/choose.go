package authoritative

import (
	"math/rand/v2"
	"net/netip"
)

// Locator tells which regions are near an address of the internet.
type Locator interface {
	// Near returns the regions, the nearest first; none when it does not know. It is called for each
	// answer that depends on it, by several goroutines, and gets a network's first address where only
	// the network is known.
	Near(client netip.Addr) []string
}

// variants are the answers of which a name gives one: by weight, or by region.
type variants struct {
	list []variant
	// weight is the sum of all; 0 for variants by region.
	weight uint64
}

type variant struct {
	records
	weight uint32
	region string
}

func (v *variants) add(one variant) {
	v.list = append(v.list, one)
	v.weight += uint64(one.weight)
}

// choose returns the records to answer with: all, or a variant's.
func (r *responder) choose(a *answer) *records {
	switch {
	case a.variants == nil:
		return &a.records
	case a.variants.weight > 0:
		return a.variants.at(rand.Uint64N(a.variants.weight))
	}
	for _, region := range r.near() {
		if found := a.variants.of(region); found != nil {
			return found
		}
	}
	if elsewhere := a.variants.of(""); elsewhere != nil {
		return elsewhere
	}
	return &a.records
}

// at returns the variant at a point of the weights, laid one behind the other.
func (v *variants) at(point uint64) *records {
	for i := range v.list {
		one := &v.list[i]
		if point < uint64(one.weight) {
			return &one.records
		}
		point -= uint64(one.weight)
	}
	return nil // not reached: the weight is the sum
}

// of returns the variant for a region, nil if there is none.
func (v *variants) of(region string) *records {
	for i := range v.list {
		if v.list[i].region == region {
			return &v.list[i].records
		}
	}
	return nil
}

// near returns the regions near the client, or near his resolver if that does not tell more. What it
// tells is then also for whom the answer is good (RFC 7871, section 7.2.1).
func (r *responder) near() []string {
	if r.service.Locator == nil {
		return nil
	}
	subnet := &r.query.edns.subnet
	client := subnet.client()
	if !client.IsValid() {
		return r.service.Locator.Near(r.from.client)
	}
	subnet.scope = subnet.source
	return r.service.Locator.Near(client)
}
