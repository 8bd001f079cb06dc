package iptables

import (
	"context"
	"errors"
	"iter"
	"slices"

	"golang.org/x/sys/unix"

	"federation/nodeagent/xtables"
)

// legacy is the kernel's tables of iptables-legacy while the lock is held; each is read when it is first needed.
type legacy struct {
	*xtables.Conn
	unlock func()
	read   map[string]*xtables.Table
}

// open takes the lock of iptables-legacy; nft has none. close must follow.
func (f *family) open(ctx context.Context) error {
	if f.backend != Legacy {
		return nil
	}
	unlock, err := xtables.Lock(ctx)
	if err != nil {
		return err
	}
	c, err := xtables.Dial(f.ipv6)
	if err != nil {
		unlock()
		return err
	}
	f.tables = &legacy{c, unlock, map[string]*xtables.Table{}}
	return nil
}

func (f *family) close() {
	if f.tables != nil {
		f.tables.forget(nat)
		f.tables.forget(filter)
		f.tables.Close()
		f.tables.unlock()
		f.tables = nil
	}
}

func (l *legacy) forget(table string) {
	if t := l.read[table]; t != nil {
		t.Close()
		delete(l.read, table)
	}
}

// table reads the table from the kernel. If the kernel has none, iptables loads its module, or reports what is missing.
func (f *family) table(ctx context.Context, name string) (*xtables.Table, error) {
	if t := f.tables.read[name]; t != nil {
		return t, nil
	}
	t, err := f.tables.Read(name)
	if errors.Is(err, unix.ENOPROTOOPT) || errors.Is(err, unix.ENOENT) {
		f.tables.unlock() // it takes it, too
		if _, err := f.exec(ctx, nil, f.command(), "-t", name, "-S"); err != nil {
			return nil, err
		}
		if f.tables.unlock, err = xtables.Lock(ctx); err != nil {
			f.tables.unlock = func() {}
			return nil, err
		}
		t, err = f.tables.Read(name)
	}
	if err == nil {
		f.tables.read[name] = t
	}
	return t, err
}

// inKernel returns what legacy tables hold of ours, and the hashes of those wanted chains that are up to date.
func (f *family) inKernel(ctx context.Context, n names, wanted want) (*found, error) {
	out := &found{&saved{n, want{}, map[jump]int{}, map[jump]bool{}}, map[place]uint64{}}
	same := f.sameAs()
	for _, name := range []string{nat, filter} {
		t, err := f.table(ctx, name)
		if err != nil {
			return nil, err
		}
		for chain, rules := range t.All() {
			p := place{name, ""}
			var ours bool
			if p.chain, ours = n.ownChain(chain); !ours {
				out.findJumps(place{name, chain}, rules, same)
				continue
			}
			out.hashes[p] = ^uint64(0)
			if w := wanted[p]; w != nil && allRulesMatch(rules, w, same) {
				out.hashes[p] = hashOf(w)
			}
		}
	}
	return out, nil
}

// sameAs reports whether a rule of the kernel's is one that is wanted.
func (f *family) sameAs() func(xtables.Rule, string) bool {
	b, add := xtables.NewBuilder(f.ipv6), entryOf(f.ipv6)
	return func(have xtables.Rule, rule string) bool {
		b.Reset()
		return add(b, rule) == nil && b.Same(have)
	}
}

func allRulesMatch(have iter.Seq[xtables.Rule], rules []string, same func(xtables.Rule, string) bool) bool {
	n := 0
	for r := range have {
		if n == len(rules) || !same(r, rules[n]) {
			return false
		}
		n++
	}
	return n == len(rules)
}

// findJumps finds our jumps in a chain of others, those after kube-proxy's, and those that kube-proxy left behind.
func (there *found) findJumps(in place, rules iter.Seq[xtables.Rule], same func(xtables.Rule, string) bool) {
	wanted := slices.DeleteFunc(slices.Concat(there.names.jumps(), there.kubeProxyJumps()), func(j jump) bool { return j.table != in.table || j.chain != in.chain })
	if len(wanted) == 0 {
		return
	}
	proxied := false // kube-proxy's has been
	for r := range rules {
		for _, j := range wanted {
			if same(r, j.rule) {
				there.jumps[j]++
				there.late[j] = proxied
			}
		}
		proxied = proxied || there.names == federated && string(r.To) == kube+chainServices
	}
}

// tableEdit returns the changes of a table. Foreign rules that lead to deleted chains are deleted too.
func (w write) tableEdit(table string, ipv6 bool) (e xtables.Edit, empty bool) {
	e = xtables.Edit{Chains: map[string][]string{}, First: map[string][]string{}, Drop: map[string][]string{}, Make: entryOf(ipv6)}
	for p, rules := range w.chains {
		if p.table == table {
			e.Chains[string(w.names)+p.chain] = rules
		}
	}
	for _, j := range w.moved {
		if j.table == table {
			e.Drop[j.chain] = append(e.Drop[j.chain], j.rule)
		}
	}
	for _, j := range w.jumps {
		if j.table == table {
			e.First[j.chain] = slices.Insert(e.First[j.chain], 0, j.rule)
		}
	}
	return e, len(e.Chains)+len(e.Drop)+len(e.First) == 0
}

// replace writes the differences into legacy tables.
func (f *family) replace(ctx context.Context, w write) error {
	for _, table := range []string{nat, filter} {
		e, empty := w.tableEdit(table, f.ipv6)
		if empty {
			continue
		}
		err := xtables.ErrChanged
		for n := 0; n < attempts && errors.Is(err, xtables.ErrChanged); n++ {
			if n > 0 { // changed by somebody without the lock: Watch has to find out what
				f.sight.others++
			}
			err = f.replaceTable(ctx, table, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *family) replaceTable(ctx context.Context, name string, e xtables.Edit) error {
	t, err := f.table(ctx, name)
	if err != nil {
		return err
	}
	defer f.tables.forget(name)
	next, err := t.Apply(e)
	if err != nil {
		return err
	}
	defer next.Close()
	return f.exchange(f.tables.Conn, next)
}

// clear deletes our chains and whatever leads to them.
func (f *family) clear(ctx context.Context, n names) error {
	if err := f.open(ctx); err != nil {
		return err
	}
	defer f.close()
	there, err := f.inKernel(ctx, n, nil)
	if err != nil {
		return err
	}
	w := write{names: n, chains: want{}}
	for p := range there.hashes {
		w.chains[p] = nil
	}
	return f.replace(ctx, w)
}
