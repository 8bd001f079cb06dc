package xtables

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// first returns a table nat that others have rules in, also rules without a target: in OUTPUT and in a chain.
func first(t testing.TB, l *layout) *Table {
	t.Helper()
	b := &Builder{layout: l}
	i := info{name: [32]byte{'n', 'a', 't'}, validHooks: 1<<0 | 1<<1 | 1<<3 | 1<<4}
	next := func() {
		b.Begin()
		b.Verdict(0)
		b.setJump(b.buf[b.entry:], len(b.buf))
	}
	for _, h := range []int{0, 1, 3, 4} {
		i.hooks[h] = uint32(b.size())
		if h == 3 {
			next()
		}
		i.floors[h] = uint32(b.size())
		b.Begin()
		b.Verdict(Accept)
	}
	b.beginChain("C20")
	next()
	b.endChain()
	b.beginChain(nameError)
	i.entries, i.size = uint32(b.count), uint32(b.size())
	out, err := parse(l, i, b.buf)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// as reads the next table as if the kernel had taken it, with room for it to grow.
func (n *Next) as(room int) (*Table, error) {
	i := n.of.info
	i.hooks, i.floors, i.entries, i.size = n.hooks, n.floors, uint32(n.count), uint32(len(n.entries()))
	return parseIn(n.of.layout, i, n.entries(), room)
}

func parseIn(l *layout, i info, blob []byte, room int) (*Table, error) {
	buf, err := mapAnonymous(sizeReplace + len(blob) + room)
	if err != nil {
		return nil, err
	}
	copy(buf[sizeReplace:], blob)
	t, err := parse(l, i, buf[sizeReplace:sizeReplace+len(blob)])
	if err != nil {
		release(buf)
		return nil, err
	}
	t.room = buf
	return t, nil
}

// word makes a rule's entry: "mark N", a verdict, or a chain.
func word(b *Builder, rule string) error {
	b.Begin()
	var n byte
	switch {
	case rule == "ACCEPT":
		b.Verdict(Accept)
	case strings.HasPrefix(rule, "mark "):
		if _, err := fmt.Sscanf(rule, "mark %d", &n); err != nil {
			return err
		}
		b.Match("mark", 1, []byte{n})
		b.Target("MARK", 2, []byte{n, 0, 0, 0, 1})
	default:
		b.Jump(rule)
	}
	return nil
}

// says returns a table's rules as text.
func says(t *Table) map[string][]string {
	out := map[string][]string{}
	for name, rules := range t.All() {
		out[name] = []string{}
		for r := range rules {
			text := string(r.To)
			if e := t.target(r.entry); text == "" && e[2] != 0 {
				text = fmt.Sprintf("mark %d", e[sizeHeader])
			} else if text == "" {
				text = "next"
				if v, _, _ := t.verdict(r.entry); v < 0 {
					text = "ACCEPT"
				}
			}
			out[name] = append(out[name], text)
		}
	}
	return out
}

// Random edits of a table and of a map of texts agree, in both families: foreign rules that lead to deleted chains are
// deleted, and counters follow the kept rules.
func TestEditsAreWhatTheySay(t *testing.T) {
	for _, l := range []*layout{ipv4, ipv6} {
		r := rand.New(rand.NewPCG(7, 8))
		held := first(t, l)
		model := says(held)
		for step := range 400 {
			e := randomEdit(r, model)
			apply(model, e)
			before, err := parseIn(l, held.info, held.blob, 0)
			if err != nil {
				t.Fatal(err)
			}
			next, err := held.Apply(e)
			if err != nil {
				t.Fatalf("step %d: %v", step, err)
			}
			now, err := next.as(r.IntN(2000))
			if err != nil {
				t.Fatalf("step %d: %v", step, err)
			}
			if have := says(now); !maps.EqualFunc(have, model, slices.Equal) {
				t.Fatalf("step %d: %v\nwant %v", step, have, model)
			}
			for _, p := range next.kept {
				if !bytes.Equal(withoutJumps(now, p.at, p.size), withoutJumps(before, p.old, p.size)) || numberAt(now, p.at) != p.entry || numberAt(before, p.old) != p.oldEntry {
					t.Fatalf("step %d: %+v is not what was there", step, p)
				}
			}
			if names := slices.Collect(maps.Keys(model)); !slices.IsSortedFunc(now.chains[4:], func(a, b chain) int {
				return bytes.Compare(now.chainNamed(now.blob[a.from:]), now.chainNamed(now.blob[b.from:]))
			}) {
				t.Fatalf("step %d: not sorted: %v", step, names)
			}
			next.Close()
			held.Close()
			before.Close()
			held = now
		}
		if len(model) < 10 {
			t.Errorf("only %d chains at the end", len(model))
		}
	}
}

func randomEdit(r *rand.Rand, model map[string][]string) Edit {
	e := Edit{Chains: map[string][]string{}, First: map[string][]string{}, Drop: map[string][]string{}, Make: word}
	name := func() string { return fmt.Sprintf("C%02d", r.IntN(40)) }
	for range 1 + r.IntN(4) {
		if n := name(); r.IntN(3) > 0 {
			e.Chains[n] = []string{}
		} else if model[n] != nil {
			e.Chains[n] = nil
		}
	}
	there := slices.DeleteFunc(slices.Sorted(maps.Keys(model)), func(n string) bool {
		rules, edited := e.Chains[n]
		return (edited && rules == nil) || !strings.HasPrefix(n, "C")
	})
	for n := range e.Chains {
		if e.Chains[n] != nil && !slices.Contains(there, n) {
			there = append(there, n)
		}
	}
	slices.Sort(there)
	rule := func() string {
		if len(there) > 0 && r.IntN(2) > 0 {
			return there[r.IntN(len(there))]
		}
		return []string{"ACCEPT", "mark 3", "mark 4"}[r.IntN(3)]
	}
	for _, n := range slices.Sorted(maps.Keys(e.Chains)) {
		for range r.IntN(5) {
			if e.Chains[n] != nil {
				e.Chains[n] = append(e.Chains[n], rule())
			}
		}
	}
	if hook := "OUTPUT"; r.IntN(3) == 0 {
		e.First[hook] = []string{rule(), "mark 9"}
		if rules := model[hook]; len(rules) > 0 && r.IntN(2) > 0 {
			pick := rules[r.IntN(len(rules))]
			if to, edited := e.Chains[pick]; pick != "next" && (!edited || to != nil) { // else it goes anyhow
				e.Drop[hook] = []string{pick}
			}
		}
	}
	return e
}

// apply is what an edit does to the texts of chains.
func apply(model map[string][]string, e Edit) {
	for n, rules := range e.Chains {
		if model[n] = rules; rules == nil {
			delete(model, n)
		}
	}
	for n, drop := range e.Drop {
		for _, d := range drop {
			i := slices.Index(model[n], d)
			model[n] = slices.Delete(slices.Clone(model[n]), i, i+1)
		}
	}
	for n, first := range e.First {
		model[n] = slices.Concat(first, model[n])
	}
	for n, rules := range model {
		model[n] = slices.DeleteFunc(slices.Clone(rules), func(r string) bool {
			_, there := model[r]
			return strings.HasPrefix(r, "C") && !there
		})
		if model[n] == nil {
			model[n] = []string{}
		}
	}
}

func withoutJumps(t *Table, at, size int) []byte {
	out := bytes.Clone(t.blob[at : at+size])
	for _, j := range t.jumps {
		if from := int(j.at); from >= at && from < at+size {
			t.setJump(out[from-at:], 0)
		}
	}
	return out
}

// numberAt returns how many entries come before an offset.
func numberAt(t *Table, offset int) (n int) {
	for at := 0; at < offset; n++ {
		_, size := t.offsets(t.blob[at:])
		at += size
	}
	return n
}

func TestWhatCannotBeDone(t *testing.T) {
	for want, e := range map[string]Edit{
		"no chain GONE to jump to":      {Chains: map[string][]string{"C": {"GONE"}}},
		"no chain NONE":                 {First: map[string][]string{"NONE": {"ACCEPT"}}},
		`OUTPUT has no rule ["ACCEPT"]`: {Drop: map[string][]string{"OUTPUT": {"ACCEPT"}}},
		"expected integer":              {Chains: map[string][]string{"C": {"mark x"}}},
	} {
		e.Make = word
		if _, err := first(t, ipv4).Apply(e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
}

// Data from the kernel, however broken, is a table or an error; an unedited table stays the same.
func FuzzParse(f *testing.F) {
	for _, l := range []*layout{ipv4, ipv6} {
		next, err := first(f, l).Apply(Edit{Make: word, Chains: map[string][]string{"A": {"mark 3", "B"}, "B": {"ACCEPT"}}, First: map[string][]string{"OUTPUT": {"A"}}})
		if err != nil {
			f.Fatal(err)
		}
		table, err := next.as(0)
		if err != nil {
			f.Fatal(err)
		}
		i := *(*[unsafe.Sizeof(info{})]byte)(unsafe.Pointer(&table.info))
		f.Add(l == ipv6, i[:], table.blob)
		f.Add(l == ipv6, i[:], table.blob[:len(table.blob)-8])
	}
	f.Fuzz(func(t *testing.T, v6 bool, about, blob []byte) {
		var i info
		copy((*[unsafe.Sizeof(i)]byte)(unsafe.Pointer(&i))[:], about)
		table, err := parseIn(layoutFor(v6), i, blob, 0)
		if err != nil {
			return
		}
		defer table.Close()
		says(table)
		next, err := table.Apply(Edit{Make: word})
		if err != nil {
			return // a jump to nowhere
		}
		defer next.Close()
		sorted := slices.IsSortedFunc(table.chains, func(a, b chain) int {
			if a.hook >= 0 || b.hook >= 0 {
				return 0
			}
			return bytes.Compare(table.chainNamed(table.blob[a.from:]), table.chainNamed(table.blob[b.from:]))
		})
		if sorted && !bytes.Equal(next.entries(), blob) {
			t.Error("nothing was done, and it is not the same")
		}
		next.header(make([]byte, sizeCounters))
		if n := binary.NativeEndian.Uint32(next.buf[36:]); n != i.entries {
			t.Errorf("%d entries of %d", n, i.entries)
		}
	})
}
