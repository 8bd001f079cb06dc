package iptables

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"federation/nodeagent/nfnetlink"
	"federation/nodeagent/xtables"
)

// Looks has the periods of Watch.
type Looks struct {
	Every time.Duration // at a number that the kernel changes with its rules: costs nothing
	Full  time.Duration // at all rules at the latest, where that number says that somebody changed something
}

// Watch calls lost when somebody else has changed our rules, or may have, until ctx ends: a Sync must follow, which finds out.
// It may run while rules are written.
//
// Legacy: it compares the number and size of a table's rules with those after the last write. nft has one number for all
// changes of all tables. If another process raised it, Watch first checks a few rules without which no Service works, and all
// of them as soon as that takes no more than a twentieth of the time.
func (w *Writer) Watch(ctx context.Context, looks Looks, lost func()) {
	ticker := time.NewTicker(looks.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for _, f := range w.families {
			if f.mayHaveLostRules(ctx, looks.Full) {
				lost()
			}
		}
	}
}

// changeDetector is what is seen of others' changes: for each family, but with nft for both together, because the kernel counts
// all changes in one number.
type changeDetector struct {
	mu     sync.Mutex  // held while rules are written or checked
	print  fingerprint // when they last were
	ours   uint32      // the family's own transactions since, with nft
	others int         // how many times it was another before

	socket *nfnetlink.Socket // nil: none was needed yet
}

// dialNetlink returns a socket in the network namespace of the thread that calls it first.
func (s *changeDetector) dialNetlink() (*nfnetlink.Socket, error) {
	var err error
	if s.socket == nil {
		s.socket, err = nfnetlink.Dial()
	}
	return s.socket, err
}

// Close frees what Write and Watch keep open. The rules stay.
func (w *Writer) Close() {
	for _, f := range w.families {
		f.sight.mu.Lock()
		if f.sight.socket != nil {
			f.sight.socket.Close()
			f.sight.socket = nil
		}
		f.sight.mu.Unlock()
	}
}

// fingerprint changes whenever the kernel's rules do.
type fingerprint struct {
	generation uint32 // nft: one more with each transaction
	tables     string // legacy: how many entries, and of what size, each has
}

// countForeignChanges counts changes by others since rules were last written or checked.
func (f *family) countForeignChanges() {
	if now, err := f.fingerprint(); err != nil || now != f.sight.print {
		f.sight.print = now
		f.sight.others++
	}
	f.sight.ours = 0
}

// mayHaveLostRules reports whether rules may have been lost.
func (f *family) mayHaveLostRules(ctx context.Context, full time.Duration) bool {
	f.sight.mu.Lock()
	defer f.sight.mu.Unlock()
	if f.state == nil { // Sync will follow anyhow
		return false
	}
	f.countForeignChanges()
	if f.looked != f.sight.others {
		f.looked = f.sight.others
		if f.backend == Legacy || f.lacksEssentialRules(ctx) {
			return true
		}
	}
	return f.synced != f.sight.others && time.Since(f.saved) > min(full, 20*f.saveTook)
}

// noteWritten takes what was written since the last notice for ours. Changes by others in between are not lost: with nft
// they raise the number more than our transactions, and with legacy the lock is still held.
func (f *family) noteWritten() (err error) {
	if f.backend == Legacy {
		f.sight.print, err = f.fingerprint()
		return err
	}
	f.sight.print.generation += f.sight.ours
	f.countForeignChanges()
	return nil
}

func (f *family) fingerprint() (out fingerprint, err error) {
	if f.backend == NFT {
		s, err := f.sight.dialNetlink()
		if err != nil {
			return out, err
		}
		out.generation, err = s.Generation()
		return out, err
	}
	c, err := xtables.Dial(f.ipv6)
	if err != nil {
		return out, err
	}
	defer c.Close()
	for _, table := range []string{nat, filter} {
		entries, size, err := c.Info(table)
		if err != nil {
			return fingerprint{}, err
		}
		out.tables += fmt.Sprintln(table, entries, size)
	}
	return out, nil
}

// lacksEssentialRules reports whether rules are gone without which nothing works.
func (f *family) lacksEssentialRules(ctx context.Context) bool {
	d := f.state.d
	fixed, prefix := d.fixed(), string(d.names)
	for _, want := range append([]jump{
		{nat, prefix + chainMarkMasq, fixed[nat][chainMarkMasq][0]},
		{filter, prefix + chainRefuse, fixed[filter][chainRefuse][0]},
		{nat, prefix + chainServices, f.state.addrs.tail[len(f.state.addrs.tail)-1]},
	}, d.jumps()...) {
		out, err := f.exec(ctx, nil, f.command(), "-t", want.table, "-S", want.chain)
		before, _, there := strings.Cut(string(out), "-A "+want.chain+" "+want.rule+"\n")
		if err != nil || !there || d.names == federated && strings.Contains(before, kubeProxys) {
			return true
		}
	}
	return false
}

// marksOfOthers are chains in the table mangle by which kubelet and kube-proxy are known.
var marksOfOthers = []string{":KUBE-IPTABLES-HINT", ":KUBE-KUBELET-CANARY", ":KUBE-PROXY-CANARY"}

// ChooseBackend returns the kind of iptables to use: "nft", "legacy", or "auto": the one with rules of kubelet or kube-proxy,
// else the kind of the command iptables.
func ChooseBackend(ctx context.Context, kind string) (Backend, error) {
	switch kind {
	case "auto":
		for _, b := range []Backend{NFT, Legacy} {
			out, err := command(ctx, nil, "iptables-"+string(b)+"-save", "-t", "mangle")
			if err == nil && slices.ContainsFunc(marksOfOthers, func(chain string) bool { return strings.Contains(string(out), chain) }) {
				return b, nil
			}
		}
		out, err := command(ctx, nil, "iptables", "--version")
		if err != nil {
			return "", fmt.Errorf("the package iptables is needed on this node: %w", err)
		}
		if strings.Contains(string(out), "legacy") {
			return Legacy, nil
		}
		return NFT, nil
	case string(NFT), string(Legacy):
		if _, err := exec.LookPath("iptables-" + kind + "-restore"); err != nil {
			return "", fmt.Errorf("the package iptables is needed on this node: %w", err)
		}
		return Backend(kind), nil
	}
	return "", fmt.Errorf("want nft, legacy or auto")
}
