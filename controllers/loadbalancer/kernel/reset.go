package kernel

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"federation/nodeagent/conntrack"
)

// ProvokeResets has clients of connections that were ended learn it, also those that wait for an answer and say nothing: each is sent a segment
// outside of its window, which it must answer (RFC 9293, 3.10.7.4). The answer belongs to no connection any more, so the kernel resets it, with the numbers
// that the client has said. It must be called in the network namespace of the flows, and takes CAP_NET_RAW: without it they learn it when they next
// send something.
func ProvokeResets(of []conntrack.Flow) error {
	var errs []error
	for _, v6 := range []bool{false, true} {
		var some []conntrack.Flow
		for _, f := range of {
			if f.Protocol == corev1.ProtocolTCP && f.Answered && f.To.Addr().Is6() == v6 {
				some = append(some, f)
			}
		}
		if len(some) > 0 {
			errs = append(errs, provoke(some, v6))
		}
	}
	return errors.Join(errs...)
}

// provoke sends a segment to each client, of one family.
func provoke(of []conntrack.Flow, v6 bool) error {
	network := "ip4:tcp"
	if v6 {
		network = "ip6:tcp"
	}
	c, err := net.ListenIP(network, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	if raw, err := c.SyscallConn(); err == nil { // it would get all packets of TCP of the machine
		_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RD) }) // it only saves memory
	}
	var errs []error
	for _, f := range of {
		segment, to := probe(f.To, f.Client), &net.IPAddr{IP: f.Client.Addr().AsSlice()}
		if v6 {
			_, err = ipv6.NewPacketConn(c).WriteTo(segment, &ipv6.ControlMessage{Src: f.To.Addr().AsSlice()}, to)
		} else {
			_, err = ipv4.NewPacketConn(c).WriteTo(segment, &ipv4.ControlMessage{Src: f.To.Addr().AsSlice()}, to)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// probe is an empty segment with an ACK, whose numbers are by chance.
func probe(from, to netip.AddrPort) []byte {
	const length, ack = 20, 0x10
	b := binary.BigEndian.AppendUint16(nil, from.Port())
	b = binary.BigEndian.AppendUint16(b, to.Port())
	b = binary.BigEndian.AppendUint32(b, rand.Uint32())
	b = binary.BigEndian.AppendUint32(b, rand.Uint32())
	b = append(b, length/4<<4, ack, 0, 0, 0, 0, 0, 0)
	binary.BigEndian.PutUint16(b[16:], checksum(b, from.Addr(), to.Addr()))
	return b
}

// checksum is that of TCP over a segment of an even length, whose own is zero, and the pseudo-header.
func checksum(segment []byte, from, to netip.Addr) uint16 {
	all := append(append(from.AsSlice(), to.AsSlice()...), 0, unix.IPPROTO_TCP, 0, byte(len(segment)))
	var sum uint32
	for all = append(all, segment...); len(all) > 0; all = all[2:] {
		sum += uint32(binary.BigEndian.Uint16(all))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
