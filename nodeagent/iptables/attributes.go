package iptables

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// put adds an attribute.
func (e *expressions) put(kind int, data []byte) {
	at := e.open(kind)
	e.buf = append(e.buf, data...)
	e.close(at)
}

func (e *expressions) number(kind int, n uint32) {
	e.put(kind, binary.BigEndian.AppendUint32(nil, n))
}

func (e *expressions) text(kind int, s string) { e.put(kind, append([]byte(s), 0)) }

// value adds bytes as nftables has them.
func (e *expressions) value(kind int, data []byte) {
	e.nest(kind, func() { e.put(unix.NFTA_DATA_VALUE, data) })
}

func (e *expressions) nest(kind int, inside func()) {
	at := e.open(kind | unix.NLA_F_NESTED)
	inside()
	e.close(at)
}

func (e *expressions) open(kind int) (at int) {
	at = len(e.buf)
	e.buf = binary.NativeEndian.AppendUint32(e.buf, 0)
	binary.NativeEndian.PutUint16(e.buf[at+2:], uint16(kind))
	return at
}

func (e *expressions) close(at int) {
	binary.NativeEndian.PutUint16(e.buf[at:], uint16(len(e.buf)-at))
	for len(e.buf)%4 != 0 {
		e.buf = append(e.buf, 0)
	}
}

// expression adds an expression; says adds its attributes.
func (e *expressions) expression(name string, says func()) {
	e.nest(unix.NFTA_LIST_ELEM, func() {
		e.text(unix.NFTA_EXPR_NAME, name)
		e.nest(unix.NFTA_EXPR_DATA, says)
	})
}

// load brings something that the kernel knows of a packet into the register that compare looks at.
func (e *expressions) load(name string, register, key int, what uint32) {
	e.expression(name, func() {
		e.number(key, what)
		e.number(register, unix.NFT_REG_1)
	})
}

func (e *expressions) payload(base, offset, size uint32) {
	e.expression("payload", func() {
		e.number(unix.NFTA_PAYLOAD_DREG, unix.NFT_REG_1)
		e.number(unix.NFTA_PAYLOAD_BASE, base)
		e.number(unix.NFTA_PAYLOAD_OFFSET, offset)
		e.number(unix.NFTA_PAYLOAD_LEN, size)
	})
}

func (e *expressions) compare(not bool, with []byte) {
	op := uint32(unix.NFT_CMP_EQ)
	if not {
		op = unix.NFT_CMP_NEQ
	}
	e.expression("cmp", func() {
		e.number(unix.NFTA_CMP_SREG, unix.NFT_REG_1)
		e.number(unix.NFTA_CMP_OP, op)
		e.value(unix.NFTA_CMP_DATA, with)
	})
}

// xtables adds a match or target of xtables.
func (e *expressions) xtables(kind, name string, revision uint32, info []byte) {
	e.expression(kind, func() { // the attributes of both have the same numbers
		e.text(unix.NFTA_MATCH_NAME, name)
		e.number(unix.NFTA_MATCH_REV, revision)
		e.put(unix.NFTA_MATCH_INFO, info)
	})
}

// counter comes before a rule's target.
func (e *expressions) counter() {
	e.expression("counter", func() {
		e.put(unix.NFTA_COUNTER_BYTES, make([]byte, 8))
		e.put(unix.NFTA_COUNTER_PACKETS, make([]byte, 8))
	})
}

func (e *expressions) immediate(code int, chain string) {
	e.expression("immediate", func() {
		e.number(unix.NFTA_IMMEDIATE_DREG, unix.NFT_REG_VERDICT)
		e.nest(unix.NFTA_IMMEDIATE_DATA, func() {
			e.nest(unix.NFTA_DATA_VERDICT, func() {
				e.number(unix.NFTA_VERDICT_CODE, uint32(code))
				if chain != "" {
					e.text(unix.NFTA_VERDICT_CHAIN, chain)
				}
			})
		})
	})
}
