package authoritative

import (
	"iter"
	"net/netip"
	"slices"
	"sync"

	"github.com/miekg/dns"

	"federation/dnsprovider"
)

const (
	// journalSets bounds the record sets that the journal holds.
	journalSets = 50_000
	// journalClients is the maximum of clients whose serial it remembers.
	journalClients = 256
)

// client is one who has transfers.
type client struct {
	key     string
	address netip.Addr
}

// journal has the last changes of the zone. An entry is valid only for a client that got its starting serial from us:
// the same serial of another replica may be another zone (ADR 28).
type journal struct {
	mu      sync.Mutex
	entries []journalEntry
	// sets counts the record sets in entries.
	sets    int
	clients map[client]uint32
}

// journalEntry is what led from one serial number to the next.
type journalEntry struct {
	from, to uint32
	changes  dnsprovider.ChangeSet
}

func (e journalEntry) size() (n int) {
	for _, step := range e.changes {
		n += len(step.Old) + len(step.New)
	}
	return n
}

// observe records the changes between two snapshots, and has the secondaries notified.
func (t *transfers) observe(old, next *snapshot, changes dnsprovider.ChangeSet) {
	if len(t.Keys) == 0 {
		return
	}
	if old.synced {
		t.journal.add(journalEntry{from: old.soa.Serial, to: next.soa.Serial, changes: changes})
	}
	for _, target := range t.targets {
		target.changed()
	}
}

// add appends an entry, and drops the oldest ones that are too many.
func (j *journal) add(e journalEntry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, e)
	j.sets += e.size()
	drop := 0
	for j.sets > journalSets {
		j.sets -= j.entries[drop].size()
		drop++
	}
	j.entries = slices.Delete(j.entries, 0, drop)
}

// noteSent records a client's serial. If there are too many clients, another one gets the whole zone next time.
func (j *journal) noteSent(c client, serial uint32) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.clients == nil {
		j.clients = map[client]uint32{}
	}
	if _, known := j.clients[c]; !known && len(j.clients) >= journalClients {
		for other := range j.clients {
			delete(j.clients, other)
			break
		}
	}
	j.clients[c] = serial
}

// incrementsSince returns the records that take a client from a serial to a snapshot (RFC 1995, section 4); false if they are not
// known, or the client does not have that serial from us.
func (j *journal) incrementsSince(c client, serial uint32, now *snapshot) (iter.Seq[dns.RR], bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if had, ok := j.clients[c]; !ok || had != serial {
		return nil, false
	}
	if serial == now.soa.Serial {
		return slices.Values([]dns.RR{&now.soa}), true
	}
	first := slices.IndexFunc(j.entries, func(e journalEntry) bool { return e.from == serial })
	last := slices.IndexFunc(j.entries, func(e journalEntry) bool { return e.to == now.soa.Serial })
	if first < 0 || last < first {
		return nil, false
	}
	return now.increments(slices.Clone(j.entries[first : last+1])), true
}

// increments returns the records of entries that end at the snapshot: for each what goes behind the old SOA,
// and what comes behind the new one.
func (s *snapshot) increments(entries []journalEntry) iter.Seq[dns.RR] {
	return func(yield func(dns.RR) bool) {
		more := yield(&s.soa)
		put := func(serial uint32, of func(dnsprovider.Step) []dnsprovider.RRSet, changes dnsprovider.ChangeSet) {
			soa := s.soa
			soa.Serial = serial
			more = more && yield(&soa)
			for _, step := range changes {
				for _, set := range of(step) {
					for _, rr := range recordsOf(set) {
						more = more && yield(rr)
					}
				}
			}
		}
		for _, e := range entries {
			put(e.from, func(s dnsprovider.Step) []dnsprovider.RRSet { return s.Old }, e.changes)
			put(e.to, func(s dnsprovider.Step) []dnsprovider.RRSet { return s.New }, e.changes)
		}
		if more {
			yield(&s.soa)
		}
	}
}
