package vip

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"

	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// tell has neighbours learn that an address is at this interface: by gratuitous ARP (RFC 5227), or an unsolicited neighbour
// advertisement (RFC 4861, section 7.2.6).
func (i *Interface) tell(addr netip.Addr) error {
	if addr.Is6() {
		return i.advertise(addr)
	}
	s, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0) // protocol 0: it receives nothing
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(s) }()
	to := &unix.SockaddrLinklayer{Protocol: binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ARP)), Ifindex: i.link.Attrs().Index, Halen: 6,
		Addr: [8]byte{255, 255, 255, 255, 255, 255}}
	const request, reply = 1, 2 // some hosts heed only the one, some the other
	return errors.Join(unix.Sendto(s, arp(request, i.link.Attrs().HardwareAddr, addr), 0, to), unix.Sendto(s, arp(reply, i.link.Attrs().HardwareAddr, addr), 0, to))
}

// arp is a message of ARP over Ethernet that says where an IPv4 address is.
func arp(operation byte, at net.HardwareAddr, addr netip.Addr) []byte {
	m := []byte{0, 1, 8, 0, 6, 4, 0, operation}
	m = append(append(m, at...), addr.AsSlice()...)
	if operation == 1 {
		at = make(net.HardwareAddr, 6)
	}
	return append(append(m, at...), addr.AsSlice()...)
}

func (i *Interface) advertise(addr netip.Addr) error {
	c, err := net.ListenPacket("ip6:ipv6-icmp", "::")
	if err != nil {
		return err
	}
	defer c.Close()
	const advertisement, override, linkAddress = 136, 0x20, 2
	m := []byte{advertisement, 0, 0, 0, override, 0, 0, 0} // the kernel adds the sum
	m = append(m, addr.AsSlice()...)
	m = append(append(m, linkAddress, 1), i.link.Attrs().HardwareAddr...)
	all := &net.IPAddr{IP: net.IPv6linklocalallnodes, Zone: i.link.Attrs().Name}
	_, err = ipv6.NewPacketConn(c).WriteTo(m, &ipv6.ControlMessage{HopLimit: 255, IfIndex: i.link.Attrs().Index}, all)
	return err
}
