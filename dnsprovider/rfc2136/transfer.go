package rfc2136

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"federation/dnsprovider"
)

// maxTransfer is how many records a transfer may have: ours are far fewer, and a server must not
// fill our memory.
const maxTransfer = 5_000_000

// transfer reads the zone. Every message of it must be signed.
func (p *Provider) transfer(conn net.Conn, zone string) ([]dns.RR, error) {
	signer, err := p.options.Key.signer()
	if err != nil {
		return nil, err
	}
	m := new(dns.Msg).SetAxfr(zone)
	signer.sign(m)
	first := &firstMessage{Conn: conn}
	in := &dns.Transfer{Conn: &dns.Conn{Conn: first}, TsigProvider: signer, ReadTimeout: callTimeout}
	envelopes, err := in.In(m, "")
	if err != nil {
		return nil, err
	}
	var rrs []dns.RR
	for envelope := range envelopes { // to the end, or the goroutine that fills them would stay
		if err == nil {
			rrs, err = append(rrs, envelope.RR...), envelope.Error
		}
		if err == nil && len(rrs) > maxTransfer {
			err = fmt.Errorf("more than %d records: not read further", maxTransfer)
			conn.Close()
		}
	}
	if err != nil {
		return nil, signer.check(m, first.message(), err)
	}
	return rrs, nil
}

// firstMessage keeps the first message of a connection: it has the reason of a refusal, which the reader of transfers
// drops.
type firstMessage struct {
	net.Conn
	read []byte
}

// Read reads from the connection.
func (f *firstMessage) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	if room := 2 + dns.MaxMsgSize - len(f.read); room > 0 {
		f.read = append(f.read, p[:min(n, room)]...)
	}
	return n, err
}

// message returns the message, or nil where there is none.
func (f *firstMessage) message() *dns.Msg {
	if len(f.read) < 2 {
		return nil
	}
	m, size := new(dns.Msg), int(f.read[0])<<8|int(f.read[1])
	if len(f.read) < 2+size || m.Unpack(f.read[2:2+size]) != nil {
		return nil
	}
	return m
}

// setsOf returns the zone's sets, sorted, without the server's own: SOA, NS at the apex, the addresses of those name
// servers, and DNSSEC records; and without sets that an RRSet cannot have, because a name in them is no host name.
func setsOf(zone string, rrs []dns.RR) []dnsprovider.RRSet {
	type key struct {
		name string
		t    uint16
	}
	own := map[string]bool{}
	gathered := map[key][]dns.RR{}
	for _, rr := range rrs {
		h := rr.Header()
		name, err := dnsprovider.CanonicalName(h.Name)
		if ns, ok := rr.(*dns.NS); ok && name == zone {
			own[strings.ToLower(ns.Ns)] = true
		}
		apex := name == zone && h.Rrtype == dns.TypeNS
		if err == nil && !apex && !slices.Contains(made, h.Rrtype) {
			gathered[key{name, h.Rrtype}] = append(gathered[key{name, h.Rrtype}], rr)
		}
	}
	var sets []dnsprovider.RRSet
	for k, rrs := range gathered {
		if own[k.name] && (k.t == dns.TypeA || k.t == dns.TypeAAAA) {
			continue
		}
		if set, err := setOf(k.name, rrs); err == nil {
			sets = append(sets, set)
		}
	}
	slices.SortFunc(sets, dnsprovider.Compare)
	return sets
}

// made are the types that a server makes itself.
var made = []uint16{
	dns.TypeSOA, dns.TypeRRSIG, dns.TypeDNSKEY, dns.TypeNSEC, dns.TypeNSEC3, dns.TypeNSEC3PARAM, dns.TypeCDS, dns.TypeCDNSKEY,
	65534, // BIND notes there how far it is with signing
}

func setOf(name string, rrs []dns.RR) (dnsprovider.RRSet, error) {
	data := make([]string, len(rrs))
	for i, rr := range rrs {
		data[i] = strings.TrimPrefix(rr.String(), rr.Header().String())
	}
	h := rrs[0].Header()
	return dnsprovider.New(name, dnsprovider.Type(dns.Type(h.Rrtype).String()), h.Ttl, data...)
}
