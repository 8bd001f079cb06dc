package authoritative

import (
	"sync"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/time/rate"

	"federation/dnsprovider/dnssec"
)

const (
	// maxDenials bounds the proofs that are kept, and denialsASecond those that are made: questions for names
	// that do not exist come in any number. Who is above that is asked to come again over TCP.
	maxDenials, denialsASecond = 16384, 4000
)

// denials makes the proofs that something is not there when they are asked for, and keeps some.
type denials struct {
	limit *rate.Limiter
	mu    sync.Mutex
	// signer is whose proofs these are.
	signer *dnssec.Signer
	kept   map[string]*records
}

func newDenials() *denials {
	return &denials{limit: rate.NewLimiter(denialsASecond, denialsASecond)}
}

// of returns the proof of what the name has not; nil when there are too many to be made. n is "" for a name
// that does not exist.
func (d *denials) of(s *snapshot, name []byte, n node) *records {
	types := []uint16{dns.TypeNXNAME}
	if n != "" {
		types = n.types()
	}
	key := string(name)
	for _, t := range types {
		key += string([]byte{byte(t >> 8), byte(t)})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.signer != s.signer || d.kept == nil {
		d.signer, d.kept = s.signer, map[string]*records{}
	}
	if known := d.kept[key]; known != nil && time.Now().Before(known.signature.due()) {
		return known
	}
	if !d.limit.Allow() {
		return nil
	}
	proof := dnssec.Denial(s.zone, nameOf(string(name)), s.negativeTTL(), types...)
	signed, err := s.sign([]dns.RR{proof}, proof.Hdr.Ttl)
	if err != nil {
		return nil
	}
	if len(d.kept) >= maxDenials {
		for other := range d.kept {
			delete(d.kept, other)
			break
		}
	}
	made := &records{packed: string(ownerless(proof)), count: 1, signature: signed}
	d.kept[key] = made
	return made
}

// types are those that a name has.
func (n node) types() (types []uint16) {
	for a := range n.answers() {
		types = append(types, a.rtype)
	}
	return types
}

// deny puts the proof that a name has not what was asked for, if the client wants one and the zone is signed. A name
// that does not exist is then one without types (RFC 9824, section 3.2), with the code that belongs to that
// unless the client takes the other (section 5).
func (r *responder) deny(name []byte, n node, owner int) {
	e := &r.query.edns
	if !e.do || r.snapshot.signer == nil {
		return
	}
	proof := r.service.denials.of(r.snapshot, name, n)
	if proof == nil {
		r.overflow = true
		return
	}
	r.authority += r.putSigned(proof, owner, 0)
	if !e.compact && r.rcode == dns.RcodeNameError {
		r.rcode = dns.RcodeSuccess
	}
}
