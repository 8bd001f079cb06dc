// Package xtables reads and replaces tables of iptables-legacy: what libiptc does for the commands, under the lock that
// they take. A table is one piece of memory, entries one after the other, in which jumps are offsets; the kernel hands out and takes
// the whole of it. What rules say is for those who use it (nodeagent/iptables).
//
//	unlock, err := xtables.Lock(ctx)
//	c, err := xtables.Dial(false)                  // IPv4, in the network namespace of the thread
//	t, err := c.Read("nat")
//	next, err := t.Apply(xtables.Edit{…})          // chains of ours; of all others' the bytes as they are
//	err = c.Replace(next)                          // and the counters of what was kept
//
// What was traded: entries of others are not understood, only bounded and moved. That is what makes a change cost little more than the
// kernel's own part. Programs of 64 bits only, as the kernel aligns entries for them (docs/adr/0058).
package xtables
