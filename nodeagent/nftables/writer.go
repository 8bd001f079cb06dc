package nftables

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"federation/nodeagent/nfnetlink"
	"federation/nodeagent/ruleset"
)

// Writer keeps the kernel's tables in line with a ruleset. It is for one goroutine at a time, except Watch.
type Writer struct {
	name   string // of both tables
	socket *nfnetlink.Socket
	events *nfnetlink.Events
	tables [2]*table // IPv4, IPv6
	states map[portKey]*state
	node   ruleset.Node // that the tables are for
	dark   time.Time    // until when what comes from outside is dropped
	wrote  int          // elements, chains and rules that the last call wrote or deleted
}

type portKey struct {
	id   ruleset.PortID
	ipv6 bool
}

func keyOf(p *ruleset.Port) portKey { return portKey{p.ID, p.IPv6} }

// New opens the kernel in the network namespace of the thread. It takes CAP_NET_ADMIN.
func New() (*Writer, error) { return NewNamed(TableName) }

// NewNamed is New for tables of another name, so that a program which is not the node agent leaves the agent's alone.
func NewNamed(name string) (*Writer, error) {
	s, err := nfnetlink.Dial()
	if err != nil {
		return nil, err
	}
	events, err := nfnetlink.Listen(unix.NFNLGRP_NFTABLES, s.Port())
	if err != nil {
		s.Close()
		return nil, err
	}
	return &Writer{name: name, socket: s, events: events}, nil
}

// Close leaves the tables as they are.
func (w *Writer) Close() {
	w.socket.Close()
	w.events.Close()
}

// Wrote returns how many messages the last Write or Sync had for the kernel.
func (w *Writer) Wrote() int { return w.wrote }

// Watch calls lost whenever somebody else has changed our tables, until the context ends. Sync restores them.
func (w *Writer) Watch(ctx context.Context, lost func()) error {
	defer context.AfterFunc(ctx, w.events.Close)()
	for {
		ours := false
		err := w.events.Next(func(_ int, attributes []byte) { // in all of them the table is the first attribute
			ours = ours || trimZero(nfnetlink.Attribute(attributes, unix.NFTA_TABLE_NAME)) == w.name
		})
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, syscall.ENOBUFS): // others changed more than the kernel could tell
			ours = true
		case err != nil:
			return fmt.Errorf("listening for changes of nftables: %w", err)
		}
		if ours {
			lost()
		}
	}
}

// Cleanup deletes our tables.
func (w *Writer) Cleanup(context.Context) error {
	var b nfnetlink.Batch
	for _, family := range families {
		for _, name := range []string{w.name, standInOf(w.name)} {
			(&transaction{t: &table{name: name, family: family}, batch: &b}).remove()
		}
	}
	w.states = nil
	return w.socket.Commit(&b)
}

var families = [2]uint8{unix.NFPROTO_IPV4, unix.NFPROTO_IPV6}

// Sync makes the tables as these ports need them, whatever is in them now: it reads them and writes the differences, in
// transactions like those of Write. Backends keep the slots they have in the kernel.
func (w *Writer) Sync(ctx context.Context, node *ruleset.Node, ports []*ruleset.Port) (err error) {
	for attempt := range attempts {
		err = w.sync(node, ports, attempt > 1 && !errors.Is(err, errOthers))
		if err == nil || !lostRace(err) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// errOthers means that what was written may be gone again.
var errOthers = errors.New("another hand changed rules while ours were loaded")

// lostRace reports whether an error comes from others having changed the table after it was read.
func lostRace(err error) bool {
	return errors.Is(err, errOthers) || errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.EEXIST) || errors.Is(err, syscall.EBUSY)
}

func (w *Writer) sync(node *ruleset.Node, ports []*ruleset.Port, replace bool) error {
	var todo steps
	var tables [2]*table
	states := make(map[portKey]*state, len(ports))
	for i, family := range families {
		have, err := read(w.socket, w.name, family)
		if err != nil {
			return fmt.Errorf("reading table %s: %w", w.name, err)
		}
		tables[i] = newTable(w.name, family, node)
		var want []item
		for _, p := range ports {
			if p.IPv6 == (family == unix.NFPROTO_IPV6) {
				s := tables[i].stateFrom(p, have)
				states[keyOf(p)] = s
				tables[i].entries(s, func(e entry, v string) {
					if tables[i].addUse(e, 1) == 1 {
						want = append(want, item{e, v})
					}
				})
			}
		}
		x := newTransaction(tables[i], &todo)
		if x.differences(have, want, replace); x.err != nil {
			return x.err
		}
		if left := time.Until(w.dark); tables[i].blackhole && left > 0 {
			x.setBlackhole(left)
		}
	}
	w.states = nil // unknown until the kernel has it
	others, err := w.load(&todo)
	if err != nil {
		return err
	}
	if others {
		return errOthers
	}
	w.tables, w.states, w.node = tables, states, *node
	return w.forget(w.stays(nil), false)
}

// loud is the maximum of bytes written while the kernel sends events to Watch.
const loud = 1 << 16

// load commits. If that is much, Watch gets no events meanwhile; others reports whether somebody else changed
// something.
func (w *Writer) load(todo *steps) (others bool, err error) {
	if todo.bytes() < loud {
		_, err = w.commit(todo)
		return false, err
	}
	before, err := w.socket.Generation()
	if err != nil {
		return false, err
	}
	left := w.events.Leave()
	n, err := w.commit(todo)
	if err = errors.Join(left, err, w.events.Join()); err != nil {
		return false, err
	}
	after, err := w.socket.Generation()
	return after != before+n, err
}

// commit returns how many transactions that were.
func (w *Writer) commit(todo *steps) (n uint32, err error) {
	w.wrote = 0
	for _, b := range todo.allBatches() {
		if b.Len() == 0 {
			continue
		}
		if err := w.socket.Commit(b); err != nil {
			return n, fmt.Errorf("writing tables %s: %w", w.name, err)
		}
		w.wrote += b.Len()
		n++
	}
	return n, nil
}

// Write applies changes of ports in one transaction; new chains come in one before it, and what packets in transit may
// fall back on goes in one after it. After an error packets go where they went before, and Sync must be next. For
// another node than before it is a Sync.
func (w *Writer) Write(ctx context.Context, node *ruleset.Node, changes []ruleset.PortChange) error {
	if w.states == nil {
		return errors.New("nftables: Write before Sync")
	}
	if !sameTables(node, &w.node) {
		return w.Sync(ctx, node, w.portsAfter(changes))
	}
	var todo steps
	for i, t := range w.tables {
		gone, come := w.delta(t, i == 1, changes)
		x := newTransaction(t, &todo)
		if x.write(gone, come); x.err != nil {
			return x.err
		}
	}
	if _, err := w.commit(&todo); err != nil {
		w.states = nil
		return err
	}
	w.forgetRecipes()
	return w.forget(w.stays(changes), true)
}

// sameTables reports whether two nodes have the same rules for the same ports.
func sameTables(a, b *ruleset.Node) bool {
	return a.Federated == b.Federated && a.Blackhole == b.Blackhole && a.Balancer == b.Balancer && slices.Equal(a.Inside, b.Inside) && slices.Equal(a.NodePortAddrs, b.NodePortAddrs) && slices.Equal(a.Pods.CIDRs, b.Pods.CIDRs) &&
		a.Pods.Bridge == b.Pods.Bridge && a.Pods.InterfacePrefix == b.Pods.InterfacePrefix
}

// portsAfter returns all ports after changes.
func (w *Writer) portsAfter(changes []ruleset.PortChange) (all []*ruleset.Port) {
	ports := map[portKey]*ruleset.Port{}
	for k, s := range w.states {
		ports[k] = s.port
	}
	for _, c := range changes {
		if c.Before != nil {
			delete(ports, keyOf(c.Before))
		}
	}
	for _, c := range changes {
		if c.After != nil {
			ports[keyOf(c.After)] = c.After
		}
	}
	return slices.Collect(maps.Values(ports))
}
