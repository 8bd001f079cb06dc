package authoritative

import (
	"sync"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/time/rate"

	"federation/dnsprovider/dnssec"
)

const (
	// maxDenials bounds the proofs that are kept, for names that exist and for others; denialsASecond bounds those that are
	// made for names that do not exist, as there is any number of them.
	maxDenials, denialsASecond = 16384, 4000
	denialShards               = 16
)

// denials makes the proofs that something is not there when they are asked for, and keeps some. Those for names that exist
// have no limit: there are only so many, and who asks for AAAA of a name with A is anybody.
type denials struct {
	// proven limits those for clients whose address is proven, by a cookie or TCP; unproven those for the others, whom
	// anybody can pretend to be.
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

// limit is the one that holds for a client.
func (d *denials) limit(proven bool) *rate.Limiter {
	if proven {
		return d.proven
	}
	return d.unproven
}

// existing returns the proof of what a name has not.
func (d *denials) existing(s *snapshot, name []byte, n node) *records {
	shard := d.shard(s, name)
	defer shard.mu.Unlock()
	return shard.of(s, shard.exists, name, nil, n.types()...)
}

// missing returns the proof that there is no such name; nil when more were asked for than the limit allows.
func (d *denials) missing(s *snapshot, name []byte, limit *rate.Limiter) *records {
	shard := d.shard(s, name)
	defer shard.mu.Unlock()
	return shard.of(s, shard.missing, name, limit, dns.TypeNXNAME)
}

// shard returns the shard of a name, locked.
func (d *denials) shard(s *snapshot, name []byte) *denialShard {
	shard := &d.shards[hashOf(name)%denialShards]
	shard.mu.Lock()
	if shard.signer != s.signer || shard.exists == nil {
		shard.signer, shard.exists, shard.missing = s.signer, map[string]*records{}, map[string]*records{}
	}
	return shard
}

// of returns the proof that is kept, or makes it if the limit, unless it is nil, allows that.
func (*denialShard) of(s *snapshot, kept map[string]*records, name []byte, limit *rate.Limiter, types ...uint16) *records {
	key := string(name)
	for _, t := range types {
		key += string([]byte{byte(t >> 8), byte(t)})
	}
	if known := kept[key]; known != nil && time.Now().Before(known.signature.due()) {
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
	made := &records{packed: string(ownerless(proof)), count: 1, signature: signed}
	kept[key] = made
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
	proof := r.proof(name, n)
	if proof == nil {
		r.overflow = true
		return
	}
	r.authority += r.putSigned(proof, owner, 0)
	if !e.compact && r.rcode == dns.RcodeNameError {
		r.rcode = dns.RcodeSuccess
	}
}

// proof returns the proof of what a name has not; nil where the client gets none, because it or all together ask for too many.
// The limit for its network comes first, so that one network cannot use up what there is for all.
func (r *responder) proof(name []byte, n node) *records {
	d := r.service.denials
	if n != "" {
		return d.existing(r.snapshot, name, n)
	}
	proven := r.known || !r.from.udp
	if !proven && r.tooMany() {
		return nil
	}
	return d.missing(r.snapshot, name, d.limit(proven))
}
