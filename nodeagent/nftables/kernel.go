package nftables

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"federation/nodeagent/nfnetlink"
)

// kernel is the kernel's state in one family.
type kernel struct {
	there    bool
	standIn  bool // there is one that nobody deleted
	chains   map[string]*kernelChain
	sets     map[string]definition // only what a definition says in numbers
	elements map[entry]string
}

type kernelChain struct {
	kind     string
	hook     uint32
	priority int32
	comments []string // of its rules; "" of one that is not ours
}

const attempts = 5 // to read while others write

// read reads the table of a name from the kernel.
func read(s *nfnetlink.Socket, name string, family uint8) (*kernel, error) {
	for range attempts {
		k := &kernel{chains: map[string]*kernelChain{}, sets: map[string]definition{}, elements: map[entry]string{}}
		err := k.read(s, name, family)
		if err == nil || !errors.Is(err, nfnetlink.ErrInterrupted) {
			return k, err
		}
	}
	return nil, fmt.Errorf("reading table %s: %w %d times", name, nfnetlink.ErrInterrupted, attempts)
}

func (k *kernel) read(s *nfnetlink.Socket, name string, family uint8) error {
	for _, part := range []struct {
		kind int
		name int // the attribute that names the table
		take func(attributes []byte)
	}{
		{unix.NFT_MSG_GETTABLE, unix.NFTA_TABLE_NAME, func([]byte) { k.there = true }},
		{unix.NFT_MSG_GETCHAIN, unix.NFTA_CHAIN_TABLE, k.chain},
		{unix.NFT_MSG_GETRULE, unix.NFTA_RULE_TABLE, k.rule},
		{unix.NFT_MSG_GETSET, unix.NFTA_SET_TABLE, k.set},
	} {
		var b nfnetlink.Batch
		b.Begin(messageType(part.kind), 0, family)
		if part.kind == unix.NFT_MSG_GETRULE || part.kind == unix.NFT_MSG_GETSET {
			b.String(part.name, name)
		}
		if err := s.Dump(&b, func(_ uint8, a []byte) {
			switch trimZero(nfnetlink.Attribute(a, part.name)) {
			case name:
				part.take(a)
			case standInOf(name):
				k.standIn = true
			}
		}); err != nil && !errors.Is(err, syscall.ENOENT) {
			return err
		}
		if !k.there {
			return nil
		}
	}
	return k.readElements(s, name, family)
}

func (k *kernel) readElements(s *nfnetlink.Socket, table string, family uint8) error {
	for name := range k.sets {
		if name == affinity || name == dark { // filled by packets, or expired by the kernel itself
			continue
		}
		if err := readSet(s, table, family, name, func(e []byte) {
			key, value := parseElement(e)
			k.elements[entry{name, key}] = value
		}); err != nil {
			return err
		}
	}
	return nil
}

// readSet calls each with the elements of a set; a missing set has none.
func readSet(s *nfnetlink.Socket, table string, family uint8, name string, each func(element []byte)) error {
	var b nfnetlink.Batch
	b.Begin(messageType(unix.NFT_MSG_GETSETELEM), 0, family)
	b.String(unix.NFTA_SET_ELEM_LIST_TABLE, table)
	b.String(unix.NFTA_SET_ELEM_LIST_SET, name)
	err := s.Dump(&b, func(_ uint8, a []byte) {
		nfnetlink.Attributes(nfnetlink.Attribute(a, unix.NFTA_SET_ELEM_LIST_ELEMENTS), func(_ int, e []byte) { each(e) })
	})
	if errors.Is(err, syscall.ENOENT) {
		return nil
	}
	return err
}

func messageType(kind int) int { return unix.NFNL_SUBSYS_NFTABLES<<8 | kind }

// trimZero returns a string without the zero that ends it.
func trimZero(b []byte) string { return string(bytes.TrimRight(b, "\x00")) }

func uint32Of(b []byte) uint32 {
	if len(b) != 4 {
		return 0
	}
	return binary.BigEndian.Uint32(b)
}

func (k *kernel) chain(a []byte) {
	hook := nfnetlink.Attribute(a, unix.NFTA_CHAIN_HOOK)
	k.chains[trimZero(nfnetlink.Attribute(a, unix.NFTA_CHAIN_NAME))] = &kernelChain{
		kind:     trimZero(nfnetlink.Attribute(a, unix.NFTA_CHAIN_TYPE)),
		hook:     uint32Of(nfnetlink.Attribute(hook, unix.NFTA_HOOK_HOOKNUM)),
		priority: int32(uint32Of(nfnetlink.Attribute(hook, unix.NFTA_HOOK_PRIORITY))),
	}
}

func (k *kernel) rule(a []byte) {
	c := k.chains[trimZero(nfnetlink.Attribute(a, unix.NFTA_RULE_CHAIN))]
	if c == nil {
		return
	}
	comment := ""
	if user := nfnetlink.Attribute(a, unix.NFTA_RULE_USERDATA); len(user) >= 2 && user[0] == 0 && len(user) >= 2+int(user[1]) {
		comment = trimZero(user[2 : 2+int(user[1])])
	}
	c.comments = append(c.comments, comment)
}

func (k *kernel) set(a []byte) {
	number := func(kind int) uint32 { return uint32Of(nfnetlink.Attribute(a, kind)) }
	d := definition{
		name:    trimZero(nfnetlink.Attribute(a, unix.NFTA_SET_NAME)),
		flags:   number(unix.NFTA_SET_FLAGS),
		key:     []datatype{{number(unix.NFTA_SET_KEY_TYPE), number(unix.NFTA_SET_KEY_LEN)}},
		verdict: number(unix.NFTA_SET_DATA_TYPE) == unix.NFT_DATA_VERDICT,
	}
	if size := number(unix.NFTA_SET_DATA_LEN); size > 0 && !d.verdict {
		d.data = []datatype{{number(unix.NFTA_SET_DATA_TYPE), size}}
	}
	k.sets[d.name] = d
}

// hasDefinition reports whether a set has the desired definition.
func (k *kernel) hasDefinition(d definition) bool {
	have, ok := k.sets[d.name]
	return ok && have.flags == d.flags && have.verdict == d.verdict &&
		concatType(have.key) == concatType(d.key) && concatWidth(have.key) == concatWidth(d.key) &&
		concatType(have.data) == concatType(d.data) && concatWidth(have.data) == concatWidth(d.data)
}

func parseElement(e []byte) (key, value string) {
	data := func(kind, part int) string {
		return string(nfnetlink.Attribute(nfnetlink.Attribute(e, kind), part))
	}
	key = data(unix.NFTA_SET_ELEM_KEY, unix.NFTA_DATA_VALUE) + data(keyEnd, unix.NFTA_DATA_VALUE)
	value = data(unix.NFTA_SET_ELEM_DATA, unix.NFTA_DATA_VALUE)
	if verdict := data(unix.NFTA_SET_ELEM_DATA, unix.NFTA_DATA_VERDICT); verdict != "" {
		value = trimZero(nfnetlink.Attribute([]byte(verdict), unix.NFTA_VERDICT_CHAIN))
	}
	return key, value
}

// keyEnd is NFTA_SET_ELEM_KEY_END, the last key of a range.
const keyEnd = 10
