package iptables

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"federation/nodeagent/nfnetlink"
)

// found is what the kernel holds of ours: the hash of each chain's rules, and which of our jumps exist.
type found struct {
	*saved
	hashes map[place]uint64
}

// read reads the kernel's rules. With iptables-nft it uses netlink: that dumps rules with their stamps, and iptables
// prints only chains without stamps, or with rules of others. iptables-save would take more than linear time.
func (f *family) read(ctx context.Context, n names, wanted want) (*found, error) {
	if f.backend == Legacy {
		return f.inKernel(ctx, n, wanted)
	}
	there := &saved{n, want{}, map[jump]int{}, map[jump]bool{}}
	if err := f.saveTable(ctx, filter, there); err != nil {
		return nil, err
	}
	stamps, plain, err := f.dump(n)
	if err != nil {
		return nil, err
	}
	if len(plain) > maxPrinted {
		there, err := f.save(ctx, n)
		return there.found(), err
	}
	for _, name := range plain {
		out, err := f.exec(ctx, nil, f.command(), "-t", nat, "-S", name)
		if err != nil {
			return nil, err
		}
		if chain, is := n.ownChain(name); is {
			there.chains[place{nat, chain}] = []string{}
		}
		parseSave(nat, out, there)
	}
	out := there.found()
	for name, hash := range stamps {
		if chain, is := n.ownChain(name); is {
			out.hashes[place{nat, chain}] = hash
		}
	}
	return out, nil
}

// maxPrinted is how many chains are printed one by one; for more, all are.
const maxPrinted = 32

func (s *saved) found() *found {
	if s == nil {
		return nil
	}
	out := &found{s, map[place]uint64{}}
	for p, rules := range s.chains {
		out.hashes[p] = hashOf(rules)
	}
	return out
}

// dump returns what the table nat holds: the hashes of our chains that have only stamped rules, by name, and the names
// of our other chains and of those that the kernel calls.
func (f *family) dump(n names) (stamps map[string]uint64, plain []string, err error) {
	s, err := f.sight.dialNetlink()
	if err != nil {
		return nil, nil, err
	}
	for range attempts {
		stamps, plain, err = f.dumpOnce(s, n)
		if !errors.Is(err, nfnetlink.ErrInterrupted) {
			break
		}
	}
	if err != nil {
		err = fmt.Errorf("reading table nat: %w", err)
	}
	return stamps, plain, err
}

const attempts = 5 // to read while others write

// dumpOnce requests the rules of each chain by itself: in a dump of all, the kernel counts through all rules again for
// each message.
func (f *family) dumpOnce(s *nfnetlink.Socket, n names) (stamps map[string]uint64, plain []string, err error) {
	stamps = map[string]uint64{}
	if err := f.dumpObjects(s, unix.NFT_MSG_GETCHAIN, map[int]string{unix.NFTA_CHAIN_TABLE: nat}, func(a []byte) {
		name := zeroEnded(nfnetlink.Attribute(a, unix.NFTA_CHAIN_NAME))
		if zeroEnded(nfnetlink.Attribute(a, unix.NFTA_CHAIN_TABLE)) != nat {
			return
		}
		if _, is := n.ownChain(name); is {
			stamps[name] = hashOf(nil)
		} else if nfnetlink.Attribute(a, unix.NFTA_CHAIN_HOOK) != nil {
			plain = append(plain, name)
		}
	}); err != nil {
		return nil, nil, err
	}
	for name, sum := range stamps {
		all := true
		if err := f.dumpObjects(s, unix.NFT_MSG_GETRULE, map[int]string{unix.NFTA_RULE_TABLE: nat, unix.NFTA_RULE_CHAIN: name}, func(a []byte) {
			hash, ok := decodeRuleHash(nfnetlink.Attribute(a, unix.NFTA_RULE_USERDATA))
			sum, all = add(sum, hash), all && ok
		}); err != nil {
			return nil, nil, err
		}
		if stamps[name] = sum; !all {
			delete(stamps, name)
			plain = append(plain, name)
		}
	}
	slices.Sort(plain)
	return stamps, plain, nil
}

// dumpObjects dumps the objects of one kind with these names; a missing table has none.
func (f *family) dumpObjects(s *nfnetlink.Socket, kind int, of map[int]string, each func(attributes []byte)) error {
	var b nfnetlink.Batch
	b.Begin(unix.NFNL_SUBSYS_NFTABLES<<8|kind, 0, protocolFamily(f.ipv6))
	for attribute, name := range of {
		b.String(attribute, name)
	}
	err := s.Dump(&b, func(_ uint8, a []byte) { each(a) })
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

func zeroEnded(b []byte) string { return string(bytes.TrimRight(b, "\x00")) }
