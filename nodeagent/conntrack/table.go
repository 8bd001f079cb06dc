package conntrack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"federation/nodeagent/nfnetlink"
	"federation/nodeagent/ruleset"
)

// Attributes of linux/netfilter/nfnetlink_conntrack.h.
const (
	subsystem = unix.NFNL_SUBSYS_CTNETLINK << 8
	get       = subsystem | 1
	remove    = subsystem | 2

	tupleOrig, tupleReply, status, protoInfo, id, filter = 1, 2, 3, 4, 12, 25
	seenReply                                            = 1 << 1 // of the status
	protoInfoTCP, tcpState, established, lastAck         = 1, 1, 3, 6
	tupleIP, tupleProto                                  = 1, 2
	v4Src, v4Dst, v6Src, v6Dst                           = 1, 2, 3, 4
	protoNumber, protoSrc, protoDst                      = 1, 2, 3
	filterOrig                                           = 1
	wantDst, wantNumber, wantPort                        = 1 << 1, 1 << 3, 1 << 5 // what a filter compares
)

// maxQuestions is the maximum of frontends queried one by one. Each query costs the kernel a walk of its table.
const maxQuestions = 8

// Table is the kernel's table of flows. It is for one goroutine at a time.
type Table struct{ socket *nfnetlink.Socket }

// Open opens the table of the thread's network namespace. It takes CAP_NET_ADMIN.
func Open() (*Table, error) {
	s, err := nfnetlink.Dial()
	if err != nil {
		return nil, err
	}
	return &Table{s}, nil
}

// Close frees the socket.
func (t *Table) Close() { t.socket.Close() }

// Remove removes the flows that changes made stale, and returns how many. It must be called in the network namespace of
// Open.
func (t *Table) Remove(changes []ruleset.PortChange) (int, error) {
	k := frontends(changes)
	found := map[string]*flow{}
	local := localAddresses()
	for _, q := range k.flowQueries() {
		if err := t.find(q, func(f *flow) bool { return k.isStale(f, local) }, found); err != nil {
			return 0, fmt.Errorf("reading flows: %w", err)
		}
	}
	return t.remove(found)
}

// remove removes flows, and returns how many did not end by themselves before.
func (t *Table) remove(found map[string]*flow) (int, error) {
	var b nfnetlink.Batch
	for _, f := range found {
		b.Begin(remove, 0, f.family)
		b.Bytes(tupleOrig|unix.NLA_F_NESTED, f.orig)
		b.Bytes(id, f.id)
	}
	removed := len(found)
	var errs []error
	for _, err := range t.socket.Do(&b) {
		removed--
		if !errors.Is(err, syscall.ENOENT) { // it ended by itself
			errs = append(errs, fmt.Errorf("forgetting a flow: %w", err))
		}
	}
	return removed, errors.Join(errs...)
}

// flowQueries returns the queries for the kernel.
func (k keep) flowQueries() (out []ruleset.FrontendKey) {
	if len(k) <= maxQuestions {
		for key := range k {
			out = append(out, key)
		}
		return out
	}
	all := map[ruleset.FrontendKey]bool{}
	for key := range k {
		all[ruleset.FrontendKey{IPv6: key.IPv6, Protocol: key.Protocol}] = true
	}
	for key := range all {
		out = append(out, key)
	}
	return out
}

// localAddresses returns a function that reports whether an address is one of the node's. It reads them at the first call.
func localAddresses() func(netip.Addr) bool {
	own := sync.OnceValue(func() map[netip.Addr]bool {
		out := map[netip.Addr]bool{}
		all, err := net.InterfaceAddrs()
		if err != nil {
			return out // as if they passed by
		}
		for _, a := range all {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				out[p.Addr().Unmap()] = true
			}
		}
		return out
	})
	return func(a netip.Addr) bool { return own()[a] }
}

// find adds the flows that a query finds and that are wanted.
func (t *Table) find(q ruleset.FrontendKey, wanted func(*flow) bool, found map[string]*flow) error {
	var err error
	for range 5 {
		b := flowQuery(q)
		err = t.socket.Dump(&b, func(family uint8, attributes []byte) {
			if f := parse(family, attributes); f != nil && wanted(f) {
				found[string(f.orig)+string(f.id)] = f
			}
		})
		if !errors.Is(err, nfnetlink.ErrInterrupted) {
			break
		}
	}
	return err
}

// flowQuery adds a query for flows of a protocol to an address, unless that is unspecified, and a port, unless that is
// 0. For IPv6 it queries all addresses: Linux (6.18 still) inverts that filter.
func flowQuery(q ruleset.FrontendKey) (b nfnetlink.Batch) {
	family, want := uint8(unix.NFPROTO_IPV4), uint32(wantNumber)
	if q.IPv6 {
		family = unix.NFPROTO_IPV6
	}
	b.Begin(get, 0, family)
	tuple := b.Nest(tupleOrig)
	if q.Addr.Is4() {
		want |= wantDst
		ip := b.Nest(tupleIP)
		b.Bytes(v4Dst, q.Addr.AsSlice())
		b.End(ip)
	}
	proto := b.Nest(tupleProto)
	b.Bytes(protoNumber, []byte{protocolNumber(q.Protocol)})
	if q.Port != 0 {
		b.Bytes(protoDst, binary.BigEndian.AppendUint16(nil, q.Port))
		want |= wantPort
	}
	b.End(proto)
	b.End(tuple)
	only := b.Nest(filter)
	b.Bytes(filterOrig, binary.NativeEndian.AppendUint32(nil, want))
	b.End(only)
	return b
}

func protocolNumber(p corev1.Protocol) byte {
	switch p {
	case corev1.ProtocolSCTP:
		return unix.IPPROTO_SCTP
	case corev1.ProtocolTCP:
		return unix.IPPROTO_TCP
	}
	return unix.IPPROTO_UDP
}

// flow is an entry of the table.
type flow struct {
	family      uint8
	orig, id    []byte // as the kernel wrote them
	protocol    byte
	from        netip.AddrPort // who asks
	to, answers netip.AddrPort // the destination, and who answers
	answered    bool           // something has come back
	state       byte           // of TCP
}

func (f *flow) protocolName() corev1.Protocol {
	switch f.protocol {
	case unix.IPPROTO_SCTP:
		return corev1.ProtocolSCTP
	case unix.IPPROTO_UDP:
		return corev1.ProtocolUDP
	case unix.IPPROTO_TCP:
		return corev1.ProtocolTCP
	}
	return ""
}

// parse decodes an entry; nil if it has no addresses and ports.
func parse(family uint8, attributes []byte) *flow {
	f := &flow{family: family}
	var reply []byte
	nfnetlink.Attributes(attributes, func(kind int, data []byte) {
		switch kind {
		case tupleOrig:
			f.orig = append([]byte(nil), data...)
		case tupleReply:
			reply = data
		case status:
			f.answered = len(data) == 4 && binary.BigEndian.Uint32(data)&seenReply != 0
		case protoInfo:
			if state := nfnetlink.Attribute(nfnetlink.Attribute(data, protoInfoTCP), tcpState); len(state) == 1 {
				f.state = state[0]
			}
		case id:
			f.id = append([]byte(nil), data...)
		}
	})
	_, f.from = tupleEnd(f.orig, v4Src, v6Src, protoSrc)
	f.protocol, f.to = tupleEnd(f.orig, v4Dst, v6Dst, protoDst)
	_, f.answers = tupleEnd(reply, v4Src, v6Src, protoSrc)
	if !f.to.IsValid() || !f.answers.IsValid() {
		return nil
	}
	return f
}

// tupleEnd returns one end of a tuple.
func tupleEnd(tuple []byte, v4, v6, port int) (protocol byte, out netip.AddrPort) {
	ip, proto := nfnetlink.Attribute(tuple, tupleIP), nfnetlink.Attribute(tuple, tupleProto)
	b := nfnetlink.Attribute(ip, v4)
	if b == nil {
		b = nfnetlink.Attribute(ip, v6)
	}
	addr, ok := netip.AddrFromSlice(b)
	n, p := nfnetlink.Attribute(proto, protoNumber), nfnetlink.Attribute(proto, port)
	if !ok || len(n) != 1 || len(p) != 2 {
		return 0, out
	}
	return n[0], netip.AddrPortFrom(addr, binary.BigEndian.Uint16(p))
}
