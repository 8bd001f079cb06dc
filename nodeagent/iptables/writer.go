package iptables

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"federation/nodeagent/ruleset"
	"federation/nodeagent/xtables"
)

// Backend is which of the two kinds of iptables in the kernel is used.
type Backend string

// The backends.
const (
	NFT    Backend = "nft"
	Legacy Backend = "legacy"
)

// Config configures a Writer.
type Config struct {
	Backend Backend
	IPv4    bool // which families are served
	IPv6    bool
}

// Writer brings rulesets into the kernel. Not for use by several goroutines at once, save Watch.
type Writer struct {
	families []*family
}

// family is the writer of one family.
type family struct {
	ipv6    bool
	backend Backend
	sight   *changeDetector // its mutex guards what follows
	state   *state          // nil if unknown: Sync first

	looked, synced int // changeDetector.others at the last check for harm, and of all rules
	saved          time.Time
	saveTook       time.Duration

	tables *legacy // while the lock is held

	exec     func(ctx context.Context, stdin []byte, name string, args ...string) ([]byte, error)
	exchange func(*xtables.Conn, *xtables.Next) error
}

// ErrNotSynced: Write was called before Sync, or after it failed.
var ErrNotSynced = errors.New("what the kernel holds is not known: Sync first")

// New returns a Writer; it does nothing yet.
func New(c Config) *Writer {
	w, seen := &Writer{}, &changeDetector{}
	for _, ipv6 := range []bool{false, true} {
		if ipv6 && c.Backend == Legacy {
			seen = &changeDetector{}
		}
		if (ipv6 && c.IPv6) || (!ipv6 && c.IPv4) {
			w.families = append(w.families, &family{backend: c.Backend, sight: seen, ipv6: ipv6, exec: command, exchange: (*xtables.Conn).Replace})
		}
	}
	return w
}

// Sync makes the kernel hold the rules of these Ports and no other rules of ours: it reads what is there and writes the
// differences, in an order that keeps each Service whole at any time.
func (w *Writer) Sync(ctx context.Context, node *ruleset.Node, ports []*ruleset.Port) error {
	return w.eachFamily(func(f *family) error {
		var mine []*ruleset.Port
		for _, p := range ports {
			if p.IPv6 == f.ipv6 {
				mine = append(mine, p)
			}
		}
		return f.sync(ctx, node, mine)
	})
}

// Write writes changes into the kernel: atomically per table and family, except for what iptables-nft needs
// iptables-restore for, which comes before. It writes only chains that differ. After an error Sync must follow.
func (w *Writer) Write(ctx context.Context, _ *ruleset.Node, changes []ruleset.PortChange) error {
	return w.eachFamily(func(f *family) error {
		var mine []ruleset.PortChange
		for _, c := range changes {
			if (c.After != nil && c.After.IPv6 == f.ipv6) || (c.Before != nil && c.Before.IPv6 == f.ipv6) {
				mine = append(mine, c)
			}
		}
		if len(mine) == 0 {
			return nil
		}
		return f.write(ctx, mine)
	})
}

// Cleanup removes everything that a Writer put into the kernel, of the scope federated only or of both. The latter's
// chains have kube-proxy's names, so its rules are removed, too.
func (w *Writer) Cleanup(ctx context.Context, federatedOnly bool) error {
	scopes := []names{federated}
	if !federatedOnly {
		scopes = append(scopes, kube)
	}
	return w.eachFamily(func(f *family) error {
		for _, n := range scopes {
			if err := f.cleanup(ctx, n); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *Writer) eachFamily(do func(*family) error) error {
	var errs []error
	for _, f := range w.families {
		if err := do(f); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (f *family) sync(ctx context.Context, node *ruleset.Node, ports []*ruleset.Port) error {
	f.sight.mu.Lock()
	defer f.sight.mu.Unlock()
	f.state = nil
	n := namesFor(node)
	s := newState(dialect{names: n, ipv6: f.ipv6, fully: true, node: node})
	wanted := s.load(ports)
	if err := f.open(ctx); err != nil {
		return err
	}
	defer f.close()
	f.countForeignChanges()
	f.synced, f.saved = f.sight.others, time.Now()
	there, err := f.read(ctx, n, wanted)
	if err != nil {
		return err
	}
	f.saveTook = time.Since(f.saved)
	s.have = there.hashes
	for p := range s.have {
		if _, keep := wanted[p]; !keep {
			wanted[p] = nil
		}
	}
	return f.keep(s, f.restore(ctx, s, there.addMissingJumps(wanted)))
}

// keep remembers the kernel's state, unless writing it failed.
func (f *family) keep(s *state, err error) error {
	if err == nil {
		f.state, err = s, f.noteWritten()
	}
	return err
}

func (f *family) write(ctx context.Context, changes []ruleset.PortChange) error {
	f.sight.mu.Lock()
	defer f.sight.mu.Unlock()
	if f.state == nil {
		return ErrNotSynced
	}
	s := f.state
	f.state = nil
	if err := f.open(ctx); err != nil {
		return err
	}
	defer f.close()
	f.countForeignChanges() // the next check will not notice, because the fingerprint will be that of this write
	return f.keep(s, f.restore(ctx, s, write{names: s.d.names, chains: s.apply(changes)}))
}

// restore writes what differs from the kernel.
func (f *family) restore(ctx context.Context, s *state, w write) error {
	for p, rules := range w.chains {
		if have, there := s.have[p]; (rules == nil && !there) || (rules != nil && there && have == hashOf(rules)) {
			delete(w.chains, p)
		}
	}
	if w.empty() {
		return nil
	}
	if err := f.put(ctx, w, s.have); err != nil {
		return err
	}
	for p, rules := range w.chains {
		if s.have[p] = hashOf(rules); rules == nil {
			delete(s.have, p)
		}
	}
	return nil
}

// put writes everything into the kernel. With iptables-nft most of it goes by netlink: after what it leads to, before
// what leads to it.
func (f *family) put(ctx context.Context, w write, have map[place]uint64) error {
	if f.backend == Legacy {
		return f.replace(ctx, w)
	}
	restored, netlink := w.divide()
	last := write{names: w.names}
	if len(netlink.chains) > 0 {
		last.jumps, last.moved, restored.jumps, restored.moved = restored.jumps, restored.moved, nil, nil
	}
	if err := f.load(ctx, restored); err != nil {
		return err
	}
	s, err := f.sight.dialNetlink()
	if err != nil {
		return err
	}
	d := direct{names: w.names, ipv6: f.ipv6}
	err = d.commit(s, netlink, have)
	f.sight.ours += d.transactions
	if err != nil {
		return err
	}
	return f.load(ctx, last)
}

func (f *family) load(ctx context.Context, w write) error {
	if w.empty() {
		return nil
	}
	text := w.text()
	f.sight.ours += uint32(bytes.Count(text, []byte("\nCOMMIT\n"))) // each is a transaction
	return f.run(ctx, "restore", text, "--noflush", "--wait", "5")
}

// addMissingJumps adds to the desired chains the jumps that are missing, or come too late, and the deletion of those that
// kube-proxy left: beside ours, and into deleted chains.
func (there *saved) addMissingJumps(chains want) write {
	w := write{names: there.names, chains: chains}
	for _, j := range there.names.jumps() {
		if there.late[j] {
			w.moved = append(w.moved, j)
		}
		if there.jumps[j] == 0 || there.late[j] {
			w.jumps = append(w.jumps, j)
		}
	}
	for _, j := range there.kubeProxyJumps() {
		w.moved = append(w.moved, slices.Repeat([]jump{j}, there.jumps[j])...)
	}
	for j, n := range there.jumps {
		if rules, known := chains[place{j.table, there.target(j.rule)}]; known && rules == nil {
			w.stale = append(w.stale, slices.Repeat([]jump{j}, n)...)
		}
	}
	return w
}

// save reads our rules from the kernel.
func (f *family) save(ctx context.Context, n names) (*saved, error) {
	there := &saved{n, want{}, map[jump]int{}, map[jump]bool{}}
	return there, errors.Join(f.saveTable(ctx, nat, there), f.saveTable(ctx, filter, there))
}

func (f *family) saveTable(ctx context.Context, table string, into *saved) error {
	out, err := f.output(ctx, "save", nil, "-t", table)
	if err == nil {
		parseSave(table, out, into)
	}
	return err
}

// cleanup deletes our chains and whatever leads to them.
func (f *family) cleanup(ctx context.Context, n names) error {
	if f.backend == Legacy {
		return f.clear(ctx, n)
	}
	there, err := f.save(ctx, n)
	if err != nil {
		return err
	}
	return f.run(ctx, "restore", cleanup(there), "--noflush", "--wait", "5")
}

// cleanup returns the input of iptables-restore that does so.
func cleanup(there *saved) []byte {
	w := write{names: there.names, chains: want{}}
	for p := range there.chains {
		w.chains[p] = nil
	}
	text := string(w.text())
	for j, n := range there.jumps {
		if _, is := there.ownChain(string(there.names) + there.target(j.rule)); is {
			drop := strings.Repeat("-D "+j.chain+" "+j.rule+"\n", n)
			text = strings.Replace(text, "*"+j.table+"\n", "*"+j.table+"\n"+drop, 1)
		}
	}
	return []byte(text)
}

func (f *family) run(ctx context.Context, what string, stdin []byte, args ...string) error {
	_, err := f.output(ctx, what, stdin, args...)
	return err
}

// output runs one of the commands, like ip6tables-nft-save.
func (f *family) output(ctx context.Context, what string, stdin []byte, args ...string) ([]byte, error) {
	return f.exec(ctx, stdin, f.command()+"-"+what, args...)
}

func (f *family) command() string {
	if f.ipv6 {
		return "ip6tables-" + string(f.backend)
	}
	return "iptables-" + string(f.backend)
}

// command runs a program and returns its output; the error has what it printed to stderr.
func command(ctx context.Context, stdin []byte, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &errs
	if err := cmd.Run(); err != nil {
		if said := strings.TrimSpace(errs.String()); said != "" {
			err = fmt.Errorf("%w: %s", err, said)
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return out.Bytes(), nil
}
