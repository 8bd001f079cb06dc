package authoritative

import (
	"sync"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/time/rate"

	"federation/dnsprovider/dnssec"
)

const (
	// maxDenials bounds the cached proofs, for names that exist and for others. denialsASecond bounds new proofs for
	// names that do not exist, of which there is no end.
	maxDenials, denialsASecond = 16384, 4000
	denialShards               = 16
)

// denials makes and caches proofs that something does not exist. Those for existing names have no limit: their number
// is bounded, and anybody may ask for AAAA of a name with A.
type denials struct {
	// proven limits proofs for clients with a proven address, by a cookie or TCP; unproven those for the others, whose
	// address may be forged.
	proven, unproven *rate.Limiter
	shards           [denialShards]denialShard
}

// denialShard has the proofs for some of the names: a signature takes a while, in which others are not to wait.
type denialShard struct {
	mu sync.Mutex
	// signer is whose proofs these are.
	signer          *dnssec.Signer
	exists, missing map[string]*records
}

func newDenials() *denials {
	limit := func() *rate.Limiter { return rate.NewLimiter(denialsASecond, denialsASecond) }
	return &denials{proven: limit(), unproven: limit()}
}

// limitFor returns the one that holds for a client.
func (d *denials) limitFor(proven bool) *rate.Limiter {
	if proven {
		return d.proven
	}
	return d.unproven
}

// typeDenial returns the proof of the types that a name lacks.
func (d *denials) typeDenial(s *snapshot, name []byte, n node) *records {
	shard := d.lockShard(s, name)
	defer shard.mu.Unlock()
	return shard.proofFor(s, shard.exists, name, nil, n.types()...)
}

// nameDenial returns the proof that a name does not exist; nil above the limit.
func (d *denials) nameDenial(s *snapshot, name []byte, limit *rate.Limiter) *records {
	shard := d.lockShard(s, name)
	defer shard.mu.Unlock()
	return shard.proofFor(s, shard.missing, name, limit, dns.TypeNXNAME)
}

// lockShard returns the shard of a name, locked.
func (d *denials) lockShard(s *snapshot, name []byte) *denialShard {
	shard := &d.shards[hashOf(name)%denialShards]
	shard.mu.Lock()
	if shard.signer != s.signer || shard.exists == nil {
		shard.signer, shard.exists, shard.missing = s.signer, map[string]*records{}, map[string]*records{}
	}
	return shard
}

// proofFor returns the cached proof, or makes it if the limit, unless nil, allows that.
func (*denialShard) proofFor(s *snapshot, kept map[string]*records, name []byte, limit *rate.Limiter, types ...uint16) *records {
	key := string(name)
	for _, t := range types {
		key += string([]byte{byte(t >> 8), byte(t)})
	}
	if known := kept[key]; known != nil && time.Now().Before(known.signature.renewalTime()) {
		return known
	}
	if limit != nil && !limit.Allow() {
		return nil
	}
	proof := dnssec.Denial(s.zone, nameOf(string(name)), s.negativeTTL(), types...)
	signed, err := s.sign([]dns.RR{proof}, proof.Hdr.Ttl)
	if err != nil {
		return nil
	}
	if len(kept) >= maxDenials/denialShards {
		for other := range kept {
			delete(kept, other)
			break
		}
	}
	made := &records{packed: string(packWithoutOwner(proof)), count: 1, signature: signed}
	kept[key] = made
	return made
}

// types returns those that a name has.
func (n node) types() (types []uint16) {
	for a := range n.answers() {
		types = append(types, a.rtype)
	}
	return types
}

// addDenial adds the proof that a name lacks the type, if the client wants one and the zone is signed. A name that does not
// exist is then one without types (RFC 9824, section 3.2), with the code for that, unless the client accepts the other
// (section 5).
func (r *responder) addDenial(name []byte, n node, owner int) {
	e := &r.query.edns
	if !e.do || r.snapshot.signer == nil {
		return
	}
	proof := r.denialProof(name, n)
	if proof == nil {
		r.overflow = true
		return
	}
	r.authority += r.putSigned(proof, owner, 0)
	if !e.compact && r.rcode == dns.RcodeNameError {
		r.rcode = dns.RcodeSuccess
	}
}

// denialProof returns the proof of what a name lacks; nil if the client, or all together, exceed a limit. The limit of its
// network is checked first, so that one network cannot use up the total.
func (r *responder) denialProof(name []byte, n node) *records {
	d := r.service.denials
	if n != "" {
		return d.typeDenial(r.snapshot, name, n)
	}
	proven := r.known || !r.from.udp
	if !proven && r.tooMany() {
		return nil
	}
	return d.nameDenial(r.snapshot, name, d.limitFor(proven))
}
