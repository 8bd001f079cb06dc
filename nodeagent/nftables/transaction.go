package nftables

import (
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"federation/nodeagent/nfnetlink"
)

// transaction collects what to write into one table, in an order that the kernel accepts.
type transaction struct {
	t       *table
	steps   *steps
	batch   *nfnetlink.Batch // that of the steps which is written into
	first   *nfnetlink.Batch // for what must be there a transaction earlier
	list    int              // where the open list of elements began; 0: none is open
	listing entry            // what is in it: the set, and "add" or "delete"
	err     error
}

func newTransaction(t *table, s *steps) *transaction {
	return &transaction{t: t, steps: s, batch: &s.rest, first: &s.chains}
}

func (x *transaction) begin(kind, flags int) {
	x.closeList()
	x.batch.Begin(messageType(kind), flags, x.t.family)
}

func (x *transaction) table(kind, flags int) {
	x.begin(kind, flags)
	x.batch.String(unix.NFTA_TABLE_NAME, x.t.name)
}

// remove deletes the whole table, if it exists.
func (x *transaction) remove() {
	x.table(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE)
	x.table(unix.NFT_MSG_DELTABLE, 0)
}

func (x *transaction) addSet(d definition) {
	b := x.batch
	x.begin(unix.NFT_MSG_NEWSET, unix.NLM_F_CREATE)
	b.String(unix.NFTA_SET_TABLE, x.t.name)
	b.String(unix.NFTA_SET_NAME, d.name)
	b.Uint32(unix.NFTA_SET_ID, uint32(b.Len()))
	b.Uint32(unix.NFTA_SET_FLAGS, d.flags)
	b.Uint32(unix.NFTA_SET_KEY_TYPE, concatType(d.key))
	b.Uint32(unix.NFTA_SET_KEY_LEN, concatWidth(d.key))
	switch {
	case d.verdict:
		b.Uint32(unix.NFTA_SET_DATA_TYPE, unix.NFT_DATA_VERDICT)
	case d.data != nil:
		b.Uint32(unix.NFTA_SET_DATA_TYPE, concatType(d.data))
		b.Uint32(unix.NFTA_SET_DATA_LEN, concatWidth(d.data))
	}
	x.describe(d)
	if d.counted {
		x.addCounter()
	}
}

// describe says the size of a set, and of one with ranges that of each part of its key.
func (x *transaction) describe(d definition) {
	b := x.batch
	at := b.Nest(unix.NFTA_SET_DESC)
	if d.size > 0 {
		b.Uint32(unix.NFTA_SET_DESC_SIZE, d.size)
	}
	if d.flags&setConcat != 0 {
		parts := b.Nest(setDescConcat)
		for _, part := range d.key {
			field := b.Nest(unix.NFTA_LIST_ELEM)
			b.Uint32(setFieldLen, part.size)
			b.End(field)
		}
		b.End(parts)
	}
	b.End(at)
}

const (
	setDescConcat = 2 // NFTA_SET_DESC_CONCAT
	setFieldLen   = 1 // NFTA_SET_FIELD_LEN
)

func (x *transaction) deleteSet(name string) {
	x.begin(unix.NFT_MSG_DELSET, 0)
	x.batch.String(unix.NFTA_SET_TABLE, x.t.name)
	x.batch.String(unix.NFTA_SET_NAME, name)
}

func (x *transaction) addChain(c chain) {
	b := x.batch
	x.begin(unix.NFT_MSG_NEWCHAIN, unix.NLM_F_CREATE)
	b.String(unix.NFTA_CHAIN_TABLE, x.t.name)
	b.String(unix.NFTA_CHAIN_NAME, c.name)
	if c.kind == "" {
		return
	}
	hook := b.Nest(unix.NFTA_CHAIN_HOOK)
	b.Uint32(unix.NFTA_HOOK_HOOKNUM, c.hook)
	b.Uint32(unix.NFTA_HOOK_PRIORITY, uint32(c.priority))
	b.End(hook)
	b.String(unix.NFTA_CHAIN_TYPE, c.kind)
}

// flush empties a chain; delete deletes an empty one.
func (x *transaction) flush(name string) {
	x.begin(unix.NFT_MSG_DELRULE, 0)
	x.batch.String(unix.NFTA_RULE_TABLE, x.t.name)
	x.batch.String(unix.NFTA_RULE_CHAIN, name)
}

func (x *transaction) deleteChain(name string) {
	x.begin(unix.NFT_MSG_DELCHAIN, 0)
	x.batch.String(unix.NFTA_CHAIN_TABLE, x.t.name)
	x.batch.String(unix.NFTA_CHAIN_NAME, name)
}

func (x *transaction) addRules(chain string, rules []rule) {
	for _, r := range rules {
		e, err := r.encode(x.t.family)
		if err != nil {
			x.err = err
			return
		}
		x.addRule(chain, e)
	}
}

func (x *transaction) addRule(chain string, e encoded) {
	b := x.batch
	x.begin(unix.NFT_MSG_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_APPEND)
	b.String(unix.NFTA_RULE_TABLE, x.t.name)
	b.String(unix.NFTA_RULE_CHAIN, chain)
	all := b.Nest(unix.NFTA_RULE_EXPRESSIONS)
	for _, bytes := range e.exprs {
		b.Bytes(unix.NFTA_LIST_ELEM|unix.NLA_F_NESTED, bytes)
	}
	b.End(all)
	user := append([]byte{0, byte(len(e.comment) + 1)}, e.comment...) // libnftnl's NFTNL_UDATA_RULE_COMMENT
	b.Bytes(unix.NFTA_RULE_USERDATA, append(user, 0))
}

// maxList bounds a message of elements: the length of a list is a number of 16 bits.
const maxList = 48 << 10

func (x *transaction) add(i item) { x.element(i, "add") }

func (x *transaction) delete(e entry) { x.element(item{e, ""}, "delete") }

func (x *transaction) element(e item, what string) {
	b := x.batch
	if x.list == 0 || x.listing != (entry{e.set, what}) || b.Size() > maxList {
		x.openList(e.set, what)
	}
	item := b.Nest(unix.NFTA_LIST_ELEM)
	key, end := e.key, ""
	if e.set == sources {
		key, end = key[:len(key)/2], key[len(key)/2:]
	}
	x.data(unix.NFTA_SET_ELEM_KEY, key)
	if end != "" {
		x.data(keyEnd, end)
	}
	switch {
	case what == "delete" || e.value == "":
	case e.set == services || e.set == sticky:
		x.verdict(e.value)
	default:
		x.data(unix.NFTA_SET_ELEM_DATA, e.value)
	}
	b.End(item)
}

func (x *transaction) openList(set, what string) {
	kind, flags := unix.NFT_MSG_NEWSETELEM, unix.NLM_F_CREATE
	if what == "delete" {
		kind, flags = unix.NFT_MSG_DELSETELEM, 0
	}
	x.begin(kind, flags)
	x.batch.String(unix.NFTA_SET_ELEM_LIST_TABLE, x.t.name)
	x.batch.String(unix.NFTA_SET_ELEM_LIST_SET, set)
	x.listing, x.list = entry{set, what}, x.batch.Nest(unix.NFTA_SET_ELEM_LIST_ELEMENTS)
}

func (x *transaction) closeList() {
	if x.list > 0 {
		x.batch.End(x.list)
		x.list = 0
	}
}

func (x *transaction) data(kind int, value string) {
	at := x.batch.Nest(kind)
	x.batch.Bytes(unix.NFTA_DATA_VALUE, []byte(value))
	x.batch.End(at)
}

func (x *transaction) verdict(chain string) {
	b, goTo := x.batch, int32(expr.VerdictGoto)
	data := b.Nest(unix.NFTA_SET_ELEM_DATA)
	verdict := b.Nest(unix.NFTA_DATA_VERDICT)
	b.Uint32(unix.NFTA_VERDICT_CODE, uint32(goTo))
	b.String(unix.NFTA_VERDICT_CHAIN, chain)
	b.End(verdict)
	b.End(data)
}
