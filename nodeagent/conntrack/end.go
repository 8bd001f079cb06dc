package conntrack

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"federation/nodeagent/ruleset"
)

// Answered are the flows to a frontend that a backend answers, or was asked to.
type Answered struct {
	To ruleset.FrontendKey
	By netip.AddrPort
	// Unanswered: only those to which nothing has come back.
	Unanswered bool
}

// Flow is one that was ended.
type Flow struct {
	Protocol   corev1.Protocol
	Client, To netip.AddrPort
	// Answered: something had come back.
	Answered bool
}

// End removes flows of any protocol, and returns them. A packet of theirs that comes later is the first of a new flow. It must be called in the
// network namespace of Open.
func (t *Table) End(of []Answered) (ended []Flow, err error) {
	if len(of) == 0 {
		return nil, nil
	}
	k := keep{}
	for _, a := range of {
		k[a.To] = nil
	}
	found := map[string]*flow{}
	for _, q := range k.flowQueries() {
		if err := t.find(q, func(f *flow) bool { return isAnswered(f, of) }, found); err != nil {
			return nil, fmt.Errorf("reading flows: %w", err)
		}
	}
	for _, f := range found {
		ended = append(ended, Flow{f.protocolName(), f.from, f.to, f.answered})
	}
	_, err = t.remove(found)
	return ended, err
}

// Open returns how many connections of TCP to frontends were translated and have not been closed.
func (t *Table) Open(to []ruleset.FrontendKey) (int, error) {
	k, of := keep{}, map[ruleset.FrontendKey]bool{}
	for _, key := range to {
		if key.Protocol == corev1.ProtocolTCP {
			k[key], of[key] = nil, true
		}
	}
	found := map[string]*flow{}
	for _, q := range k.flowQueries() {
		if err := t.find(q, func(f *flow) bool {
			key := ruleset.FrontendKey{Addr: f.to.Addr(), IPv6: f.to.Addr().Is6(), Protocol: f.protocolName(), Port: f.to.Port()}
			any := key
			any.Addr = netip.Addr{}
			return (of[key] || of[any]) && f.answers != f.to && f.state >= established && f.state < lastAck
		}, found); err != nil {
			return 0, fmt.Errorf("reading flows: %w", err)
		}
	}
	return len(found), nil
}

// isAnswered reports whether a flow is one of these. One that was not translated is none.
func isAnswered(f *flow, of []Answered) bool {
	for _, a := range of {
		if a.By == f.answers && a.To.Protocol == f.protocolName() && a.To.Port == f.to.Port() && (a.To.Addr == f.to.Addr() || !a.To.Addr.IsValid()) && f.answers != f.to && (!a.Unanswered || !f.answered) {
			return true
		}
	}
	return false
}
