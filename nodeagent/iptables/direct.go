package iptables

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"federation/nodeagent/nfnetlink"
)

// direct writes straight into the kernel's nftables: chains of nat, as iptables-nft writes them.
type direct struct {
	names
	ipv6  bool
	batch nfnetlink.Batch

	transactions uint32 // that were sent
}

// maxMessages bounds the messages of new chains per transaction: a message of a rule has some hundred bytes.
const maxMessages = 10000

// divide splits off what iptables-restore must write: the table filter, jumps, and rules with matches and targets that
// encode would not make as iptables-nft does.
func (w write) divide() (restored, netlink write) {
	restored, netlink = w, write{names: w.names, chains: want{}}
	restored.chains = want{}
	for p, rules := range w.chains {
		if p.table == filter || needsRestore(rules) {
			restored.chains[p] = rules
		} else {
			netlink.chains[p] = rules
		}
	}
	return restored, netlink
}

func needsRestore(rules []string) bool {
	for _, r := range rules {
		for _, word := range []string{"-m mark", "-j MASQUERADE"} {
			if strings.Contains(r, word) {
				return true
			}
		}
	}
	return false
}

// commit writes chains. First new ones, to which nothing leads yet, in as many transactions as that takes; then in one
// what leads to them and what goes.
func (d *direct) commit(s *nfnetlink.Socket, w write, have map[place]uint64) error {
	for p, rules := range w.chains {
		if _, there := have[p]; !there && rules != nil {
			d.chain(unix.NFT_MSG_NEWCHAIN, p)
		}
	}
	for p, rules := range w.chains {
		if _, there := have[p]; !there && rules != nil {
			if err := d.rules(p, rules); err != nil {
				return err
			}
		}
		if d.batch.Len() > maxMessages {
			if err := d.send(s); err != nil {
				return err
			}
		}
	}
	for p, rules := range w.chains {
		if _, there := have[p]; there {
			d.flush(p)
			if err := d.rules(p, rules); err != nil {
				return err
			}
		}
	}
	for p, rules := range w.chains {
		if rules == nil {
			d.chain(unix.NFT_MSG_DELCHAIN, p)
		}
	}
	return d.send(s)
}

func (d *direct) send(s *nfnetlink.Socket) error {
	if d.batch.Len() > 0 {
		d.transactions++
	}
	err := s.Commit(&d.batch)
	d.batch = nfnetlink.Batch{}
	if err != nil {
		return fmt.Errorf("writing chains by netlink: %w", err)
	}
	return nil
}

func (d *direct) begin(kind, flags int) {
	d.batch.Begin(unix.NFNL_SUBSYS_NFTABLES<<8|kind, flags, protocolFamily(d.ipv6))
}

func protocolFamily(ipv6 bool) uint8 {
	if ipv6 {
		return unix.NFPROTO_IPV6
	}
	return unix.NFPROTO_IPV4
}

// chain creates a chain, or deletes an empty one.
func (d *direct) chain(kind int, p place) {
	d.begin(kind, unix.NLM_F_CREATE)
	d.batch.String(unix.NFTA_CHAIN_TABLE, p.table)
	d.batch.String(unix.NFTA_CHAIN_NAME, string(d.names)+p.chain)
}

func (d *direct) flush(p place) {
	d.begin(unix.NFT_MSG_DELRULE, 0)
	d.batch.String(unix.NFTA_RULE_TABLE, p.table)
	d.batch.String(unix.NFTA_RULE_CHAIN, string(d.names)+p.chain)
}

// rules adds rules to a chain. Each has a stamp, by which it is recognized without being parsed.
func (d *direct) rules(p place, rules []string) error {
	for _, r := range rules {
		exprs, err := encode(r, d.ipv6)
		if err != nil {
			return err
		}
		d.begin(unix.NFT_MSG_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_APPEND)
		d.batch.String(unix.NFTA_RULE_TABLE, p.table)
		d.batch.String(unix.NFTA_RULE_CHAIN, string(d.names)+p.chain)
		d.batch.Bytes(unix.NFTA_RULE_EXPRESSIONS|unix.NLA_F_NESTED, exprs)
		if strings.Contains(r, "-m sctp") { // it requires its protocol
			at := d.batch.Nest(unix.NFTA_RULE_COMPAT)
			d.batch.Uint32(unix.NFTA_RULE_COMPAT_PROTO, unix.IPPROTO_SCTP)
			d.batch.Uint32(unix.NFTA_RULE_COMPAT_FLAGS, 0)
			d.batch.End(at)
		}
		d.batch.Bytes(unix.NFTA_RULE_USERDATA, encodeRuleHash(r))
	}
	return nil
}

// stampHead is a type of user data that neither iptables nor nft knows, so that they pass it over, and its length.
var stampHead = []byte{0xfe, 8}

// encodeRuleHash returns a rule's user data: the hash of its text.
func encodeRuleHash(rule string) []byte {
	return binary.BigEndian.AppendUint64(bytes.Clone(stampHead), ruleHash(rule))
}

// decodeRuleHash returns the hash in a rule's user data.
func decodeRuleHash(user []byte) (uint64, bool) {
	if !bytes.HasPrefix(user, stampHead) || len(user) != len(stampHead)+8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(user[len(stampHead):]), true
}
