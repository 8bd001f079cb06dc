package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"federation/nodeagent/nfnetlink"
)

// commits is our histogram of the time from a change's arrival to its being in the kernel.
type commits struct{ count, seconds float64 }

func (p *process) commits() (commits, error) {
	const name = "nodeagent_arrival_to_commit_seconds_"
	m, err := p.metrics(name)
	return commits{m[name+"count"], m[name+"sum"]}, err
}

// commitSince is how long the writes took on the average that there have been since.
func (p *process) commitSince(ctx context.Context, before commits) (took time.Duration, err error) {
	return took, until(ctx, 5*time.Second, func() error {
		now, err := p.commits()
		if err == nil && now.count == before.count { // a connect() may see it first
			err = errors.New("the agent does not say that it has written anything")
		}
		took = time.Duration((now.seconds - before.seconds) / (now.count - before.count) * float64(time.Second))
		return err
	})
}

// floors are the least that iptables takes in a mode, with the proxy's rules in place.
type floors struct {
	one       time.Duration // a change: one rule of nobody (nft), the table by itself (legacy)
	all       time.Duration // iptables-restore of the rules that there are, once more
	steady    time.Duration // such changes at the rate of the scenario steady: the median time from when one is due until it is done
	steadyCPU time.Duration // for a second of that
}

func (s *site) floors(backend string) (f floors, err error) {
	err = s.Do(func() error {
		rules, err := exec.Command("/usr/sbin/iptables-"+backend+"-save", "-t", "nat").Output()
		if err != nil {
			return err
		}
		change := func() error { return replaceByItself("nat") }
		if backend == "nft" {
			if err := restore(backend, "*nat\n:OTHER - [0:0]\n-A OTHER -j RETURN\nCOMMIT\n", "--noflush"); err != nil {
				return err
			}
			socket, err := nfnetlink.Dial()
			if err != nil {
				return err
			}
			defer socket.Close()
			change = func() error { return addByNetlink(socket) }
		}
		if f.one, err = timed(11, change); err != nil {
			return err
		}
		if f.steady, f.steadyCPU, err = atRate(change); err != nil {
			return err
		}
		f.all, err = timed(1, func() error { return restore(backend, string(rules)) })
		return err
	})
	return f, err
}

// atRate makes changes as often as the scenario steady does, for some seconds. One that takes so long that others become due makes these with the next.
func atRate(change func() error) (lag, cpu time.Duration, err error) {
	const seconds = 5
	var before, after unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &before); err != nil {
		return 0, 0, err
	}
	var lags []time.Duration
	begun := time.Now()
	for n := 0; n < steadyRate*seconds; {
		due := func() time.Duration { return time.Until(begun.Add(time.Duration(n) * time.Second / steadyRate)) }
		time.Sleep(due())
		open := n
		for n < steadyRate*seconds && due() <= 0 {
			n++
		}
		if err := change(); err != nil {
			return 0, 0, err
		}
		for ; open < n; open++ {
			lags = append(lags, time.Since(begun.Add(time.Duration(open)*time.Second/steadyRate)))
		}
	}
	took := time.Since(begun)
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &after); err != nil {
		return 0, 0, err
	}
	used := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
	return percentile(lags, 50), time.Duration(float64(used) / took.Seconds()), nil
}

// emptyNAT has the kernel track connections and translate those that a rule says; no packet meets one that does.
const emptyNAT = `table ip floor {
	chain prerouting { type nat hook prerouting priority -100; }
	chain output { type nat hook output priority -100; }
	chain postrouting { type nat hook postrouting priority 100; ip saddr 255.255.255.255 masquerade; }
}`

// floorDirect is the least that a connection to no Service takes where anybody translates any.
func (s *site) floorDirect() (time.Duration, error) {
	nft := func(script string) error {
		return s.Do(func() error {
			cmd := exec.Command("/usr/sbin/nft", "-f", "-")
			cmd.Stdin = strings.NewReader(script)
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w: %s", cmd, err, out)
			}
			return nil
		})
	}
	if err := nft(emptyNAT); err != nil {
		return 0, err
	}
	took, err := s.latencies(s.accepting)
	return took[0], errors.Join(err, nft("delete table ip floor"))
}

// timed is the median time of doing something several times.
func timed(times int, do func() error) (time.Duration, error) {
	var all []time.Duration
	for range times {
		begun := time.Now()
		if err := do(); err != nil {
			return 0, err
		}
		all = append(all, time.Since(begun))
	}
	return percentile(all, 50), nil
}

func restore(backend, rules string, args ...string) error {
	cmd := exec.Command("/usr/sbin/iptables-"+backend+"-restore", args...)
	cmd.Stdin = strings.NewReader(rules)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", cmd, err, out)
	}
	return nil
}

// addByNetlink puts one rule in place of all in the chain OTHER: -j RETURN.
func addByNetlink(socket *nfnetlink.Socket) error {
	var b nfnetlink.Batch
	begin := func(kind, flags int) {
		b.Begin(unix.NFNL_SUBSYS_NFTABLES<<8|kind, flags, unix.NFPROTO_IPV4)
		b.String(unix.NFTA_RULE_TABLE, "nat")
		b.String(unix.NFTA_RULE_CHAIN, "OTHER")
	}
	begin(unix.NFT_MSG_DELRULE, 0)
	begin(unix.NFT_MSG_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_APPEND)
	nested := []int{b.Nest(unix.NFTA_RULE_EXPRESSIONS), b.Nest(unix.NFTA_LIST_ELEM)}
	b.String(unix.NFTA_EXPR_NAME, "immediate")
	nested = append(nested, b.Nest(unix.NFTA_EXPR_DATA))
	b.Uint32(unix.NFTA_IMMEDIATE_DREG, unix.NFT_REG_VERDICT)
	nested = append(nested, b.Nest(unix.NFTA_IMMEDIATE_DATA), b.Nest(unix.NFTA_DATA_VERDICT))
	verdict := int32(unix.NFT_RETURN)
	b.Uint32(unix.NFTA_VERDICT_CODE, uint32(verdict))
	for _, at := range nested {
		b.End(at)
	}
	return socket.Commit(&b)
}
