package nettest

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"net"
	"net/netip"
	"testing"
	"time"
)

// Chunks of RFC 9260, section 3.3, and what a state cookie is among the parameters of an INIT ACK.
const (
	sctpProtocol        = "132"
	chunkInit, chunkAck = 1, 2
	stateCookie         = 7
	commonHeader        = 12
	initLength          = 20
	tagOfAll            = 0x1234567 // of verification
)

// sctpPacket returns a packet with one chunk: INIT, or INIT ACK with a text as its cookie.
func sctpPacket(from, to uint16, tag uint32, chunk byte, text string) []byte {
	b := binary.BigEndian.AppendUint16(nil, from)
	b = binary.BigEndian.AppendUint16(b, to)
	b = binary.BigEndian.AppendUint32(b, tag)
	b = append(b, 0, 0, 0, 0) // checksum
	length := initLength
	if text != "" {
		length += 4 + len(text)
	}
	b = binary.BigEndian.AppendUint16(b, uint16(chunk)<<8)
	b = binary.BigEndian.AppendUint16(b, uint16(length))
	b = binary.BigEndian.AppendUint32(b, tagOfAll)
	b = append(b, 0, 0, 255, 255, 0, 1, 0, 1, 0, 0, 0, 1) // window, streams, first number
	if text != "" {
		b = binary.BigEndian.AppendUint16(b, stateCookie)
		b = binary.BigEndian.AppendUint16(b, uint16(4+len(text)))
		b = append(b, text...)
		b = append(b, make([]byte, (4-len(b)%4)%4)...)
	}
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// parseSCTP reads such a packet.
func parseSCTP(b []byte) (from, to uint16, chunk byte, text string) {
	if len(b) < commonHeader+initLength {
		return 0, 0, 0, ""
	}
	if at := commonHeader + initLength; len(b) >= at+4 {
		if n := int(binary.BigEndian.Uint16(b[at+2:])); n >= 4 && len(b) >= at+n {
			text = string(b[at+4 : at+n])
		}
	}
	return binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:]), b[commonHeader], text
}

func networkOf(a netip.Addr) string {
	if a.Is4() {
		return "ip4:" + sctpProtocol
	}
	return "ip6:" + sctpProtocol
}

// ServeSCTP has the host answer each INIT to a port with an INIT ACK, in both families, until the test ends. It takes no
// SCTP of the kernel, whose netfilter follows associations all the same.
func (h *Host) ServeSCTP(t testing.TB, port uint16) {
	t.Helper()
	for _, addr := range []netip.Addr{h.V4, h.V6} {
		var c *net.IPConn
		must(t, "raw socket", h.Do(func() (err error) {
			c, err = net.ListenIP(networkOf(addr), &net.IPAddr{IP: addr.AsSlice()})
			return err
		}))
		t.Cleanup(func() { c.Close() })
		go func() {
			for b := make([]byte, 256); ; {
				n, peer, err := c.ReadFromIP(b)
				if err != nil {
					return
				}
				if from, to, chunk, _ := parseSCTP(b[:n]); to == port && chunk == chunkInit {
					client, _ := netip.AddrFromSlice(peer.IP)
					_, _ = c.WriteToIP(sctpPacket(port, from, tagOfAll, chunkAck, h.answer(netip.AddrPortFrom(client, from))), peer)
				}
			}
		}()
	}
}

// AskSCTP sends an INIT from a port and waits for the INIT ACK. A refusal is syscall.ECONNREFUSED; silence is
// os.ErrDeadlineExceeded.
func (h *Host) AskSCTP(from uint16, to netip.AddrPort) (got Answer, err error) {
	var c *net.IPConn
	if err := h.Do(func() (err error) {
		c, err = net.DialIP(networkOf(to.Addr()), nil, &net.IPAddr{IP: to.Addr().AsSlice()})
		return err
	}); err != nil {
		return got, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience / 5)); err != nil {
		return got, err
	}
	if _, err := c.Write(sctpPacket(from, to.Port(), 0, chunkInit, "")); err != nil {
		return got, err
	}
	for b := make([]byte, 256); ; {
		n, _, err := c.ReadFromIP(b) // unlike Read, without the header of IPv4
		if err != nil {
			return got, err
		}
		switch server, client, chunk, text := parseSCTP(b[:n]); {
		case client != from:
		case server != to.Port() || chunk != chunkAck:
			return got, errors.New("an answer from another port, or of another kind")
		default:
			return parseAnswer([]byte(text))
		}
	}
}
