package authoritative

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/netip"

	"federation/dnsprovider"
)

// Locator returns the regions near an address of the internet.
type Locator interface {
	// Near returns the regions, the nearest first; none if it does not know. It is called for each answer that depends
	// on it, by several goroutines. If only the client's network is known, it gets that network's first address.
	Near(client netip.Addr) []string
}

// variant is one of the answers that a name chooses from: by weight, or by region.
type variant struct {
	weight uint32
	region string
	records
}

// variants packs the variants of a set: for each its weight (4 bytes), its region and the size of that (1), and its
// records.
func (p packer) variants(t uint16, set dnsprovider.RRSet) (string, error) {
	var b []byte
	for _, v := range set.Variants {
		part, err := p.records(t, set, v.Rdata)
		if err != nil {
			return "", err
		}
		if len(v.Region) > 255 {
			return "", fmt.Errorf("record %s %s: region %q: must have at most 255 bytes", set.Name, set.Type, v.Region)
		}
		b = binary.LittleEndian.AppendUint32(b, v.Weight)
		b = part.append(append(append(b, byte(len(v.Region))), v.Region...))
	}
	return string(b), nil
}

// variants reads what packer.variants has packed, of the types A and AAAA.
func (a *answer) variants() iter.Seq[variant] {
	return func(yield func(variant) bool) {
		for b, more := a.more, true; b != "" && more; {
			region := 5 + int(b[4])
			v := variant{weight: uint32At(b, 0), region: b[5:region]}
			v.records, b = cutRecords(b[region:])
			more = yield(v)
		}
	}
}

// chooseRecords returns the records to answer with: all, or a variant's.
func (r *responder) chooseRecords(a *answer) records {
	if a.more == "" || a.recordStride() == 0 {
		return a.records
	}
	if weight := a.weight(); weight > 0 {
		return a.variantAt(rand.Uint64N(weight))
	}
	for _, region := range r.regionsNear() {
		if found, ok := a.variantFor(region); ok {
			return found
		}
	}
	if elsewhere, ok := a.variantFor(""); ok {
		return elsewhere
	}
	return a.records
}

// weight returns the sum of the variants' weights; 0 for variants by region.
func (a *answer) weight() (sum uint64) {
	for v := range a.variants() {
		sum += uint64(v.weight)
	}
	return sum
}

// variantAt returns the variant at a point of the weights, laid one behind the other.
func (a *answer) variantAt(point uint64) records {
	for v := range a.variants() {
		if point < uint64(v.weight) {
			return v.records
		}
		point -= uint64(v.weight)
	}
	return a.records // not reached: the point is within the sum
}

// variantFor returns the variant for a region.
func (a *answer) variantFor(region string) (records, bool) {
	for v := range a.variants() {
		if v.region == region {
			return v.records, true
		}
	}
	return records{}, false
}

// regionsNear returns the regions near the client, or near its resolver if the client subnet does not help. The scope of the
// answer is set accordingly (RFC 7871, section 7.2.1).
func (r *responder) regionsNear() []string {
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
