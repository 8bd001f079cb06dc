// Package xtables reads and replaces tables of iptables-legacy: what libiptc does for the commands, under the lock that they
// take. A table is one piece of memory, entries one after another, in which jumps are offsets. The kernel returns and takes the
// whole of it. Its user knows the meaning of rules (nodeagent/iptables).
//
//	unlock, err := xtables.Lock(ctx)
//	c, err := xtables.Dial(false)                  // IPv4, in the network namespace of the thread
//	t, err := c.Read("nat")
//	next, err := t.Apply(xtables.Edit{…})          // our chains; all others' bytes unchanged
//	err = c.Replace(next)                          // and the counters of kept entries
//
// What was traded: foreign entries are not parsed, only bounded and moved. That makes a change cost little more than the
// kernel's own part. It works in programs of 64 bits only, because the kernel aligns entries for them (docs/adr/0058).
package xtables
