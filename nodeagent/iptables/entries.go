package iptables

import (
	"net/netip"

	"federation/nodeagent/xtables"
)

// entries are rules as entries of a legacy table, as iptables-legacy makes them.
type entries struct {
	w ruleParser
	*xtables.Builder
}

// entryOf adds a rule to a table, or to what is compared with one.
func entryOf(ipv6 bool) func(*xtables.Builder, string) error {
	e := &entries{w: ruleParser{ipv6: ipv6}}
	e.w.into = e
	return func(b *xtables.Builder, rule string) error {
		e.Builder = b
		b.Begin()
		return e.w.read(rule)
	}
}

func (e *entries) address(destination, not bool, p netip.Prefix) {
	if destination {
		e.Destination(not, p)
	} else {
		e.Source(not, p)
	}
}

func (e *entries) protocol(not bool, number byte) { e.Protocol(not, number) }

func (e *entries) device(not bool, name string) { e.In(not, name) }

// port adds xt_tcp or xt_udp, which begin the same: the ports of the source, of which any will do, and of the destination.
func (e *entries) port(protocol string, lo, hi uint16) {
	info, bytes := newExtension[xtTCPInfo](&e.w)
	info.sourcePorts, info.destinationPorts = [2]uint16{0, 0xffff}, [2]uint16{lo, hi}
	e.Match(protocol, 0, bytes)
}

func (e *entries) match(name string, revision uint8, info []byte) { e.Match(name, revision, info) }

func (e *entries) target(name string, revision uint8, info []byte) { e.Target(name, revision, info) }

func (e *entries) verdict(v int32) { e.Verdict(v) }

func (e *entries) jump(chain string) { e.Jump(chain) }
