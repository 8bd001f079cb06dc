package nfnetlink

import (
	"encoding/hex"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// The bytes of two messages, on a little-endian machine, put together by hand from netlink(7) and linux/netfilter/nfnetlink.h.
func TestBatchAsBytes(t *testing.T) {
	var b Batch
	b.Begin(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE, unix.NFPROTO_IPV4)
	b.String(unix.NFTA_TABLE_NAME, "web")
	b.Begin(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWSET, 0, unix.NFPROTO_IPV6)
	nest := b.Nest(unix.NFTA_SET_DESC)
	b.Uint32(unix.NFTA_SET_DESC_SIZE, 0x01020304)
	b.Bytes(unix.NFTA_SET_ID, []byte{1, 2, 3, 4, 5})
	b.End(nest)
	const want = "" +
		"1c000000" + "000a" + "0104" + "00000000" + "00000000" + // 28 bytes, NEWTABLE, REQUEST|CREATE, number, port
		"02" + "00" + "0000" + // IPv4, version 0, no resource
		"0800" + "0100" + "77656200" + // attribute 1 of 8 bytes: "web" and a zero
		"2c000000" + "090a" + "0100" + "00000000" + "00000000" +
		"0a" + "00" + "0000" +
		"1800" + "0980" + // attribute 9, nested, of 24 bytes
		"0800" + "0100" + "01020304" + // in network byte order
		"0900" + "0a00" + "0102030405" + "000000" // of 9 bytes, padded
	if got := hex.EncodeToString(b.buf); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if b.Len() != 2 || b.Size() != 44 {
		t.Errorf("%d messages, the last of %d bytes", b.Len(), b.Size())
	}
}

func TestAttributesAreReadBack(t *testing.T) {
	var b Batch
	b.Begin(0, 0, 0)
	b.String(1, "a")
	nest := b.Nest(2)
	b.Bytes(3, []byte{7})
	b.End(nest)
	b.Bytes(2, []byte("second"))
	data := b.buf[unix.SizeofNlMsghdr+4:]
	if got := Attribute(Attribute(data, 2), 3); !slices.Equal(got, []byte{7}) {
		t.Errorf("the attribute in the nest: %v", got)
	}
	if got := Attribute(data, 9); got != nil {
		t.Errorf("an attribute that is not there: %v", got)
	}
	var kinds []int
	Attributes(data, func(kind int, _ []byte) { kinds = append(kinds, kind) })
	if !slices.Equal(kinds, []int{1, 2, 2}) {
		t.Errorf("kinds %v", kinds)
	}
}

func FuzzAttributes(f *testing.F) {
	f.Add([]byte{5, 0, 1, 0, 9, 0, 0, 0, 4, 0, 2, 128})
	f.Add([]byte{3, 0, 0, 0})
	f.Add([]byte{255, 255, 0, 0, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		bytes := 0
		Attributes(data, func(kind int, d []byte) {
			bytes += unix.SizeofNlAttr + len(d)
			if kind > 0x3fff {
				t.Errorf("the kind %#x has the flags yet", kind)
			}
		})
		if bytes > len(data) {
			t.Errorf("%d bytes of %d", bytes, len(data))
		}
	})
}
