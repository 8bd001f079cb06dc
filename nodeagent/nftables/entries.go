package nftables

import (
	"encoding/binary"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"federation/nodeagent/ruleset"
)

// state is a Port and in which slots its backends are.
type state struct {
	port  *ruleset.Port
	slots [len(ruleset.Pools)][]netip.AddrPort
}

// firstSlot returns the number of the first slot of a pool, above all of the pools before it.
func firstSlot(pool int) int { return pool << 16 }

// entry is where an element or a chain is: the set, "" for a chain, and the key, which of a range is both ends.
type entry struct{ set, key string }

// in returns the set.
func (e entry) in() string { return e.set }

// item is an entry and what it is mapped to.
type item struct {
	entry
	value string
}

// entries calls emit with everything that a Port has in the kernel and its value. Other Ports may share some of it:
// chains, and elements of shared sets.
func (t *table) entries(s *state, emit func(e entry, value string)) {
	for i := range s.port.Frontends {
		t.frontend(s, &s.port.Frontends[i], emit)
	}
	for _, b := range backendsOf(s.port) {
		addr := string(b.Addr.Addr().AsSlice())
		if b.Local {
			emit(entry{hairpin, addr + addr}, "")
		}
		if b.Cluster != "" {
			emit(entry{remote, addr}, "")
		}
	}
	if t.balancer {
		balancer{t}.countBackends(s.port, emit)
	}
}

func (t *table) frontend(s *state, f *ruleset.Frontend, emit func(entry, string)) {
	key := t.frontendKey(f.Key)
	if f.Alone {
		emit(entry{clusterIPs, string(f.Key.Addr.AsSlice())}, "")
	}
	if f.Uses(ruleset.Reject) {
		emit(entry{refused, key}, "")
	}
	if t.blackhole && !f.Kind.Inside() {
		emit(entry{exposed, key}, "")
	}
	shape := t.shapeOf(s, f)
	if !shape.actsBeforeRouting() {
		return
	}
	emit(entry{services, key}, shape.name())
	if shape.affinity > 0 {
		emit(entry{sticky, key}, shape.stick())
	}
	t.chainsOf(shape, func(name string) { emit(entry{"", name}, "") })
	for _, r := range f.SourceRanges {
		first, last := rangeEnds(r)
		emit(entry{sources, key + string(first) + key + string(last)}, "")
	}
	for i, to := range ruleset.Pools {
		if shape.uses(to) {
			slots(key, firstSlot(i), s.slots[i], emit)
		}
	}
}

func slots(key string, first int, slots []netip.AddrPort, emit func(entry, string)) {
	for i, backend := range slots {
		emit(entry{endpoints, key + slotKey(first+i)}, backendValue(backend))
	}
}

// frontendKey returns address . protocol . port; a node port has the unspecified address.
func (t *table) frontendKey(k ruleset.FrontendKey) string {
	b := make([]byte, 0, 24)
	if k.Addr.IsValid() {
		b = append(b, k.Addr.AsSlice()...)
	} else {
		b = append(b, t.anyAddress()...)
	}
	b = append(b, protocolNumber[k.Protocol], 0, 0, 0)
	return string(append(binary.BigEndian.AppendUint16(b, k.Port), 0, 0))
}

func backendValue(a netip.AddrPort) string {
	return string(append(binary.BigEndian.AppendUint16(a.Addr().AsSlice(), a.Port()), 0, 0))
}

func parseBackend(value string) netip.AddrPort {
	n := len(value) - 4
	addr, _ := netip.AddrFromSlice([]byte(value[:max(n, 0)]))
	if !addr.IsValid() {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(addr, binary.BigEndian.Uint16([]byte(value[n:])))
}

func slotKey(i int) string { return string(binary.NativeEndian.AppendUint32(nil, uint32(i))) }

var protocolNumber = map[corev1.Protocol]byte{corev1.ProtocolTCP: 6, corev1.ProtocolUDP: 17, corev1.ProtocolSCTP: 132}

// rangeEnds returns the first and the last address of a range.
func rangeEnds(p netip.Prefix) (first, last []byte) {
	first, last = p.Masked().Addr().AsSlice(), p.Masked().Addr().AsSlice()
	for bit := p.Bits(); bit < len(last)*8; bit++ {
		last[bit/8] |= 0x80 >> (bit % 8)
	}
	return first, last
}
