package nftables

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"federation/nodeagent/nfnetlink"
)

// outsideRules drop, while the set dark has an element, packets from outside to addresses that clients there know:
// including existing connections, as if the node were dead. They see packets before translation.
func (t *table) outsideRules() []rule {
	one := []expr.Any{&expr.Immediate{Register: registerNumber(0), Data: []byte(slotKey(0))}}
	answers := []expr.Any{&expr.Ct{Key: expr.CtKeyDIRECTION, Register: registerNumber(0)}, &expr.Cmp{Op: expr.CmpOpEq, Register: registerNumber(0), Data: []byte{1}}}
	inside := verdictExpr(expr.VerdictReturn)
	rules := []rule{
		{"no drill", join(one, notIn(dark, 0), inside)},
		{"answers", join(answers, inside)},
		{"from this node", join(isLocal(true), inside)},
	}
	if t.pods.Known() {
		rules = append(rules, rule{"from a pod", join(t.fromPod(), inside)})
	}
	for _, p := range t.inside {
		rules = append(rules, rule{"from inside", join(t.source(0), t.matchNetwork(p, expr.CmpOpEq), inside)})
	}
	rules = append(rules, rule{"to a Service from outside", join(t.frontendOf(0, false), matchSet(exposed, 0), verdictExpr(expr.VerdictDrop))})
	for _, where := range t.nodePortAddresses() {
		rules = append(rules, rule{"to a node port from outside", join(where, t.frontendOf(0, true), matchSet(exposed, 0), verdictExpr(expr.VerdictDrop))})
	}
	return rules
}

// Blackhole makes the kernel drop packets to Services from outside until a time, unless it is called again; a zero or
// past time ends that. The kernel itself ends it, whatever happens to this process. It needs an earlier Sync for a node
// with Blackhole.
func (w *Writer) Blackhole(_ context.Context, until time.Time) error {
	w.dark = until
	var b nfnetlink.Batch
	for _, t := range w.tables {
		if t != nil && t.blackhole {
			(&transaction{t: t, batch: &b}).setBlackhole(time.Until(until))
		}
	}
	if b.Len() == 0 {
		return nil
	}
	if err := w.socket.Commit(&b); err != nil {
		return fmt.Errorf("writing tables %s: set %s: %w", w.name, dark, err)
	}
	return nil
}

// setBlackhole gives the set dark its element for d from the commit on, whatever it has now. Older kernels keep the timeout
// of an existing element.
func (x *transaction) setBlackhole(d time.Duration) {
	b := x.batch
	x.begin(unix.NFT_MSG_DELSETELEM, 0) // without elements: all
	b.String(unix.NFTA_SET_ELEM_LIST_TABLE, x.t.name)
	b.String(unix.NFTA_SET_ELEM_LIST_SET, dark)
	if d < time.Millisecond {
		return
	}
	x.begin(unix.NFT_MSG_NEWSETELEM, unix.NLM_F_CREATE)
	b.String(unix.NFTA_SET_ELEM_LIST_TABLE, x.t.name)
	b.String(unix.NFTA_SET_ELEM_LIST_SET, dark)
	all := b.Nest(unix.NFTA_SET_ELEM_LIST_ELEMENTS)
	element := b.Nest(unix.NFTA_LIST_ELEM)
	x.data(unix.NFTA_SET_ELEM_KEY, slotKey(0))
	b.Bytes(unix.NFTA_SET_ELEM_TIMEOUT, binary.BigEndian.AppendUint64(nil, uint64(d.Milliseconds())))
	b.End(element)
	b.End(all)
}
