package nftables

import (
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"federation/nodeagent/nfnetlink"
	"federation/nodeagent/ruleset"
)

// A packet that began before a change sees the new elements, but not the rules of a new chain: no transaction may add
// both a chain and what leads to chains.
func TestChainsComeFirst(t *testing.T) {
	k, r := newKernel(t), rand.New(rand.NewPCG(13, 14))
	k.sync()
	events, seen := k.listen()
	brought := 0
	for step := range 60 {
		k.update(k.vary(r.IntN(10), r)...)
		if step%10 == 9 { // what changed while no process was there
			k.restart()
			k.model.Update(k.vary(r.IntN(10), r)...)
			k.sync()
		}
		for _, b := range k.transactions(events, &seen) {
			if b.chains && b.verdicts {
				t.Fatalf("step %d: a transaction brings a chain and elements that lead to chains", step)
			}
			if b.chains {
				brought++
			}
		}
	}
	if brought < 20 {
		t.Errorf("only %d transactions brought chains", brought)
	}
}

// If a frontend switches to another pool, as at the end of a graded fallback, a packet that began before is in transit
// to the first pool: its first slot is deleted a transaction later.
func TestFallbacksGoLast(t *testing.T) {
	k := newKernel(t)
	k.sync()
	events, seen := k.listen()
	s := service(1)
	s.Spec.Ports[0].NodePort, s.Annotations = 30001, map[string]string{ruleset.AnnotationFallbackBelow: "100%"}
	k.model.SetService(s)
	remote := endpointSlices(s.Name, 500, 1)[0]
	remote.Name, remote.Labels = "remote", map[string]string{ruleset.LabelManagedBy: "a-federation", ruleset.LabelRemoteService: s.Name, ruleset.LabelSourceCluster: "b"}
	k.model.SetSlice(remote)
	later := 0
	for step := range 20 {
		own, ready := endpointSlices(s.Name, 0, 2)[0], step%2 == 0
		own.Endpoints[0].Conditions.Ready = &ready
		k.update(k.model.SetSlice(own)...)
		for _, b := range k.transactions(events, &seen) {
			for slot := range b.gone {
				frontend, n := slot[:len(slot)-4], slot[len(slot)-4:]
				switch first := n == slotKey(firstSlot(0)) || n == slotKey(firstSlot(1)); {
				case first && b.leads[frontend]:
					t.Fatalf("step %d: a transaction leads a frontend elsewhere and takes the slot %x with it", step, slot)
				case first:
					later++
				}
			}
		}
	}
	if later < 5 {
		t.Errorf("only %d times a pool went from a frontend that stayed", later)
	}
	if n := k.sync(); n != 0 {
		t.Errorf("%d messages were still to be written", n)
	}
}

// While a table is replaced, another serves: each deleted one has one beside it since an earlier transaction.
func TestATableIsReplacedWhileAnotherServes(t *testing.T) {
	k := newKernel(t)
	k.sync()
	k.fill(10, rand.New(rand.NewPCG(15, 16)))
	events, seen := k.listen()
	if err := k.Writer.sync(k.model.Node(), k.model.Ports(), true); err != nil {
		t.Fatal(err)
	}
	serves, replaced := map[string]bool{TableName: true}, 0
	for i, b := range k.transactions(events, &seen) {
		for name, other := range map[string]string{TableName: standInOf(TableName), standInOf(TableName): TableName} {
			if b.goes[name] > 0 && !serves[other] {
				t.Errorf("transaction %d takes %s away while %s does not serve", i, name, other)
			}
			replaced += b.goes[TableName]
		}
		for _, name := range []string{TableName, standInOf(TableName)} {
			serves[name] = b.serves[name] || serves[name] && b.goes[name] == 0
		}
	}
	if replaced == 0 || !serves[TableName] || serves[standInOf(TableName)] || strings.Contains(k.nft("list", "tables"), standInOf(TableName)) {
		t.Errorf("%d tables replaced; at the end serve %v and are there:\n%s", replaced, serves, k.nft("list", "tables"))
	}
}

// A stand-in left by an agent that was killed goes with the next Sync.
func TestAStandInThatWasLeft(t *testing.T) {
	k := newKernel(t)
	k.sync()
	k.nft("add", "table", "ip", standInOf(TableName))
	k.sync()
	if tables := k.nft("list", "tables"); strings.Contains(tables, standInOf(TableName)) {
		t.Errorf("it is there:\n%s", tables)
	}
}

// listen hears of all that is written from now on, after the generation seen.
func (k *kernelOf) listen() (events *nfnetlink.Events, seen uint32) {
	k.t.Helper()
	err := k.node.Do(func() (err error) { events, err = nfnetlink.Listen(unix.NFNLGRP_NFTABLES, 0); return err })
	if err == nil {
		k.t.Cleanup(events.Close)
		seen, err = k.socket.Generation()
	}
	if err != nil {
		k.t.Fatal(err)
	}
	return events, seen
}

// brings is what a transaction did.
type brings struct {
	chains, verdicts bool
	leads            map[string]bool // frontends to which it gave another chain
	came, gone       map[string]bool // slots
	serves           map[string]bool // tables in which it gave a frontend a chain
	goes             map[string]int  // tables that it took away
}

func noBrings() *brings {
	return &brings{leads: map[string]bool{}, came: map[string]bool{}, gone: map[string]bool{}, serves: map[string]bool{}, goes: map[string]int{}}
}

// transactions returns those that events tell of after the generation seen, up to the last that there was.
func (k *kernelOf) transactions(events *nfnetlink.Events, seen *uint32) (all []*brings) {
	k.t.Helper()
	last, err := k.socket.Generation()
	now := noBrings()
	for *seen != last && err == nil {
		err = events.Next(func(kind int, a []byte) {
			if kind != messageType(unix.NFT_MSG_NEWGEN) {
				now.note(kind, a)
				return
			}
			for slot := range now.came {
				delete(now.gone, slot)
			}
			*seen = uint32Of(nfnetlink.Attribute(a, unix.NFTA_GEN_ID))
			all, now = append(all, now), noBrings()
		})
	}
	if err != nil {
		k.t.Fatal(err)
	}
	return all
}

func (b *brings) note(kind int, a []byte) {
	table, set := trimZero(nfnetlink.Attribute(a, unix.NFTA_SET_ELEM_LIST_TABLE)), trimZero(nfnetlink.Attribute(a, unix.NFTA_SET_ELEM_LIST_SET))
	slots := map[int]map[string]bool{messageType(unix.NFT_MSG_NEWSETELEM): b.came, messageType(unix.NFT_MSG_DELSETELEM): b.gone}[kind]
	switch {
	case kind == messageType(unix.NFT_MSG_DELTABLE):
		b.goes[table]++
	case kind == messageType(unix.NFT_MSG_NEWCHAIN):
		b.chains = true
	case slots != nil && (set == endpoints || set == services):
		nfnetlink.Attributes(nfnetlink.Attribute(a, unix.NFTA_SET_ELEM_LIST_ELEMENTS), func(_ int, e []byte) {
			key, _ := parseElement(e)
			if set == endpoints {
				slots[key] = true
			} else if kind == messageType(unix.NFT_MSG_NEWSETELEM) {
				b.leads[key], b.serves[table] = true, true
			}
		})
	}
	b.verdicts = b.verdicts || kind == messageType(unix.NFT_MSG_NEWSETELEM) && (set == services || set == sticky)
}
