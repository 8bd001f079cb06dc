package authoritative

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"log/slog"
	"time"

	"github.com/miekg/dns"

	"federation/dnsprovider"
	"federation/dnsprovider/dnssec"
)

const (
	// renewEvery is the period of checking signatures. renewBatch is how many names are signed again in one edit:
	// changes get their turn in between.
	renewEvery, renewBatch = time.Hour, 100
)

// sign signs everything in the zone, see Server.Sign.
func (z *zone) sign(signer *dnssec.Signer) error {
	z.applying.Lock()
	defer z.applying.Unlock()
	old := z.current.Load()
	next := old.edit()
	next.signer = signer
	for n := range old.names.all() {
		if err := next.packAgain(n); err != nil {
			return err
		}
	}
	return z.publish(old, next, nil)
}

// packAgain packs, and signs, what a name has.
func (e edit) packAgain(n node) error {
	var answers []answer
	var err error
	switch n.name() {
	case e.wire:
		answers, err = e.apex()
	case wireName(e.soa.Ns):
		answers, err = e.addresses(e.nameServers)
	default:
		answers, err = e.packSets(n.sets(nameOf(n.name())))
	}
	if err != nil {
		return err
	}
	e.set(n.name(), answers)
	return nil
}

// nameOf returns a name of the zone as text.
func nameOf(wire string) string {
	name, _, _ := dns.UnpackDomainName([]byte(wire), 0) // the zone has none that cannot be unpacked
	return name
}

// apex packs the server's own records at the apex. finish puts the SOA into the first place.
func (s *snapshot) apex() ([]answer, error) {
	ns, err := s.packNS(s.soa.Ns)
	if err != nil || s.signer == nil {
		return []answer{{}, ns}, err
	}
	sets, err := s.signer.Apex(time.Now())
	answers := []answer{{}, ns}
	for _, set := range sets {
		answers = append(answers, packSigned(set))
	}
	return answers, err
}

// packSigned packs a set that has its signatures behind it.
func packSigned(set []dns.RR) answer {
	a := answer{rtype: set[0].Header().Rrtype}
	var packed []byte
	var signatures []*dns.RRSIG
	for _, rr := range set {
		if s, ok := rr.(*dns.RRSIG); ok {
			signatures = append(signatures, s)
			continue
		}
		packed = append(packed, packWithoutOwner(rr)...)
		a.count++
	}
	a.packed, a.signature = string(packed), packSignatures(signatures, set[0].Header().Ttl)
	return a
}

// packWithoutOwner packs a record with the question as its owner.
func packWithoutOwner(rr dns.RR) []byte {
	rr = dns.Copy(rr)
	rr.Header().Name = "."
	buf := make([]byte, dns.Len(rr))
	n, err := dns.PackRR(rr, buf, 0, nil, false)
	if err != nil {
		return nil
	}
	return append(binary.BigEndian.AppendUint16(nil, ownerAtQuestion), buf[1:n]...)
}

// packSignatures packs the signatures of one set.
func packSignatures(list []*dns.RRSIG, ttl uint32) signature {
	var packed []byte
	for _, one := range list {
		packed = appendRecord(packed, dns.TypeRRSIG, ttl, signatureData(one))
	}
	return newSignature(dnssec.Due(list[0]), uint16(len(list)), packed)
}

// signatureData returns the data of a signature on the wire (RFC 4034, section 3.1).
func signatureData(s *dns.RRSIG) []byte {
	data := binary.BigEndian.AppendUint16(nil, s.TypeCovered)
	data = append(data, s.Algorithm, s.Labels)
	for _, n := range []uint32{s.OrigTtl, s.Expiration, s.Inception} {
		data = binary.BigEndian.AppendUint32(data, n)
	}
	data = append(binary.BigEndian.AppendUint16(data, s.KeyTag), wireName(s.SignerName)...)
	signed, _ := base64.StdEncoding.DecodeString(s.Signature) // we made it
	return append(data, signed...)
}

// sign signs records whose answers have a time to live of ttl; "" in a zone that is not signed.
func (p packer) sign(set []dns.RR, ttl uint32) (signature, error) {
	if p.signer == nil || len(set) == 0 {
		return "", nil
	}
	made, err := p.signer.Sign(set, time.Now())
	if err != nil {
		return "", fmt.Errorf("records %s %s cannot be signed: %w", set[0].Header().Name, dns.Type(set[0].Header().Rrtype), err)
	}
	return packSignatures([]*dns.RRSIG{made}, ttl), nil
}

// signSet signs the values of a set.
func (p packer) signSet(set dnsprovider.RRSet, values []string) (signature, error) {
	if p.signer == nil {
		return "", nil
	}
	set.Rdata = values
	return p.sign(recordsOf(set), set.TTL)
}

// renewOnTime renews signatures before they expire, until the context ends.
func (z *zone) renewOnTime(ctx context.Context) {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if err := z.renew(now); err != nil {
				slog.Error("Failed to renew signatures, will retry", "zone", z.name, "err", err, "after", renewEvery)
			}
		}
	}
}

// renew renews the signatures that are due.
func (z *zone) renew(now time.Time) error {
	var due []string
	for n := range z.current.Load().names.all() {
		if n.renewalDue(now) {
			due = append(due, n.name())
		}
	}
	for len(due) > 0 {
		batch := due[:min(renewBatch, len(due))]
		due = due[len(batch):]
		if err := z.renewNames(batch); err != nil {
			return err
		}
	}
	return nil
}

func (z *zone) renewNames(names []string) error {
	z.applying.Lock()
	defer z.applying.Unlock()
	old := z.current.Load()
	next := old.edit()
	for _, name := range names {
		if n := old.lookup(name); n != "" {
			if err := next.packAgain(n); err != nil {
				return err
			}
		}
	}
	return z.publish(old, next, nil)
}

// renewalDue reports whether a signature of the name must be renewed.
func (n node) renewalDue(now time.Time) bool {
	for a := range n.answers() {
		if s := a.signature; s != "" && !now.Before(s.renewalTime()) {
			return true
		}
	}
	return false
}
