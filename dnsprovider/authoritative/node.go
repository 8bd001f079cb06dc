package authoritative

import (
	"encoding/binary"
	"iter"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"federation/dnsprovider"
)

// node is what a name has, as one piece of memory: in a large zone a lookup costs the wait for memory, and the garbage
// collector has nothing to scan in it. A name with only names below it (an empty non-terminal) has a node too: it exists
// (RFC 8020). "" is no node.
//
// It is the number of existing names directly below (4 bytes, as all numbers little endian), the size of the name (1), the
// name in lower case and wire format, and the answers.
type node string

const (
	nameSizeAt = 4
	nameAt     = 5
	// answerSize is the size of an answer without what is variable: its whole size (4 bytes), type (2) and records.
	answerSize = 6 + recordsSize
	// recordsSize is that of records: count (2), suffixes (2 each), sizes of packed and of the signature (4 each).
	recordsSize = 14
)

// newNode makes a node. name is in lower case and as on the wire.
func newNode(name string, children uint32, answers []answer) node {
	size := nameAt + len(name)
	for i := range answers {
		size += answers[i].size()
	}
	b := make([]byte, 0, size)
	b = binary.LittleEndian.AppendUint32(b, children)
	b = append(append(b, byte(len(name))), name...)
	for i := range answers {
		b = answers[i].append(b)
	}
	return node(b)
}

func (a *answer) size() int {
	return answerSize + len(a.packed) + len(a.signature) + len(a.more)
}

func (a *answer) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(a.size()))
	b = binary.LittleEndian.AppendUint16(b, a.rtype)
	return append(a.records.append(b), a.more...)
}

func (r *records) append(b []byte) []byte {
	for _, n := range []uint16{r.count, r.suffixes[0], r.suffixes[1]} {
		b = binary.LittleEndian.AppendUint16(b, n)
	}
	for _, n := range []int{len(r.packed), len(r.signature)} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return append(append(b, r.packed...), r.signature...)
}

// cutRecords reads records from the beginning of b; rest is what is behind them.
func cutRecords(b string) (r records, rest string) {
	packed := recordsSize + int(uint32At(b, 6))
	end := packed + int(uint32At(b, 10))
	return records{
		packed: b[recordsSize:packed], count: uint16At(b, 0),
		suffixes: [2]uint16{uint16At(b, 2), uint16At(b, 4)}, signature: signature(b[packed:end]),
	}, b[end:]
}

func uint16At(b string, at int) uint16 { return uint16(b[at]) | uint16(b[at+1])<<8 }

func uint32At(b string, at int) uint32 {
	b = b[at : at+4]
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

// name is in lower case and as on the wire.
func (n node) name() string { return string(n[nameAt : nameAt+int(n[nameSizeAt])]) }

func (n node) children() uint32 {
	if n == "" {
		return 0
	}
	return uint32At(string(n), 0)
}

// withChildren returns the node of that name with another number of names below it.
func (n node) withChildren(name string, children uint32) node {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, nameAt+len(name)+len(n.packed())), children)
	b = append(append(b, byte(len(name))), name...)
	return node(append(b, n.packed()...))
}

// packed returns the answers as they lie in the node.
func (n node) packed() string {
	if n == "" {
		return ""
	}
	return string(n[nameAt+int(n[nameSizeAt]):])
}

// find returns what the name has of a type; false if nothing. For ANY it is the first set: one is enough (RFC 8482,
// section 4.1).
func (n node) find(t uint16) (a answer, found bool) {
	for b := n.packed(); b != ""; b = b[uint32At(b, 0):] {
		if got := uint16At(b, 4); got == t || t == dns.TypeANY {
			return answerAt(b), true
		}
	}
	return answer{}, false
}

// answerAt reads the answer at the beginning of b.
func answerAt(b string) (a answer) {
	a.rtype = uint16At(b, 4)
	a.records, a.more = cutRecords(b[6:uint32At(b, 0)])
	return a
}

// answers returns what the name has of each type: of the provider's records and the server's own.
func (n node) answers() iter.Seq[answer] {
	return func(yield func(answer) bool) {
		for b := n.packed(); b != "" && yield(answerAt(b)); {
			b = b[uint32At(b, 0):]
		}
	}
}

// sets returns the provider's records, sorted. name is the node's as text. It is not for the names that have the
// server's own.
func (n node) sets(name string) (all []dnsprovider.RRSet) {
	for a := range n.answers() {
		all = append(all, a.set(name))
	}
	slices.SortFunc(all, dnsprovider.Compare)
	return all
}

// set returns the set that packSet has packed into the answer.
func (a *answer) set(name string) dnsprovider.RRSet {
	set := dnsprovider.RRSet{Name: name, Type: dnsprovider.Type(dns.Type(a.rtype).String()), TTL: binary.BigEndian.Uint32([]byte(a.packed[6:10]))}
	switch set.Type {
	case dnsprovider.A, dnsprovider.AAAA:
		set.Rdata = a.addresses()
		for v := range a.variants() {
			set.Variants = append(set.Variants, dnsprovider.Variant{Rdata: v.addresses(), Weight: v.weight, Region: strings.Clone(v.region)})
		}
	case dnsprovider.CNAME:
		target := a.more
		if target == "" {
			target = a.packed[recordHeader:]
		}
		set.Rdata = []string{nameOf(target)}
	default:
		set.Rdata = strings.Split(strings.Clone(a.more), "\n")
	}
	return set
}

// addresses returns the addresses in A and AAAA records, as text.
func (r *records) addresses() []string {
	list := make([]string, 0, r.count)
	for b := r.packed; b != ""; {
		end := recordHeader + int(b[recordHeader-1]) // the size of an address is one byte
		address, _ := netip.AddrFromSlice([]byte(b[recordHeader:end]))
		list, b = append(list, address.String()), b[end:]
	}
	return list
}

// signature has the signatures of records: when they must be renewed, in seconds since 1970 (8 bytes), their number
// (2), and the records. "" in an unsigned zone.
type signature string

func newSignature(due time.Time, count uint16, packed []byte) signature {
	b := binary.LittleEndian.AppendUint64(nil, uint64(due.Unix()))
	return signature(append(binary.LittleEndian.AppendUint16(b, count), packed...))
}

func (s signature) renewalTime() time.Time {
	return time.Unix(int64(uint32At(string(s), 0))|int64(uint32At(string(s), 4))<<32, 0)
}

func (s signature) records() records {
	if s == "" {
		return records{}
	}
	return records{packed: string(s[10:]), count: uint16At(string(s), 8)}
}
