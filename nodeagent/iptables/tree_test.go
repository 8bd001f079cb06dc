package iptables

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func testTree() *tree {
	return &tree{root: "ROOT", tail: []string{"-j LAST"}, rules: map[string][]string{}, scope: func(key string, bits int) (string, string) {
		return fmt.Sprintf("-d %x/%d", key, bits), fmt.Sprintf("NET-%x", key)[:4+bits/4]
	}}
}

// The changes of set add up to what all returns, for any order of added and deleted keys.
func TestATreesChangesAddUpToTheTree(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, spread := range []int{40, 600, 20000} {
		tr, held := testTree(), map[string][]string{"ROOT": {"-j LAST"}}
		for step := range 1500 {
			n := r.IntN(spread)
			key := string([]byte{10, byte(n >> 12), byte(n >> 5), byte(n << 2)})
			rules := []string{fmt.Sprintf("-d %x -j R%d", key, r.IntN(2))}
			if r.IntN(1500) < step { // grows, then shrinks
				rules = nil
				if len(tr.keys) > 0 && step%2 == 0 {
					key = tr.keys[r.IntN(len(tr.keys))]
				}
			}
			for chain, rules := range tr.set(key, rules) {
				if held[chain] = rules; rules == nil {
					delete(held, chain)
				}
			}
			if want := whole(tr); step%50 == 0 && !maps.EqualFunc(held, want, slices.Equal) {
				t.Fatalf("spread %d, step %d, %d keys: %d chains by changes, want %d", spread, step, len(tr.keys), len(held), len(want))
			}
		}
	}
}

func whole(tr *tree) map[string][]string {
	out := map[string][]string{}
	tr.all(func(chain string, rules []string) { out[chain] = rules })
	return out
}

// A packet to any of 10,000 addresses meets few rules, and a change of one writes few.
func TestATreeIsShallow(t *testing.T) {
	tr := testTree()
	r := rand.New(rand.NewPCG(5, 6))
	for range 10000 {
		key := string([]byte{10, byte(r.IntN(16)), byte(r.IntN(256)), byte(r.IntN(256))})
		tr.set(key, []string{fmt.Sprintf("-d %x -j SVC", key)})
	}
	chains, most := whole(tr), 0
	for i := 0; i < len(tr.keys); i += 37 {
		most = max(most, met(chains, "ROOT", tr.keys[i]))
	}
	written := 0
	for _, rules := range tr.set("\x0a\x03\x04\x05", []string{"-d 0a030405 -j SVC"}) {
		written += len(rules)
	}
	if most > 80 || written > 150 {
		t.Errorf("a packet meets up to %d rules, a change looks at %d", most, written)
	}
}

// met counts the rules that a packet meets until its own.
func met(chains map[string][]string, chain, key string) int {
	n := 0
	for _, rule := range chains[chain] {
		n++
		f := strings.Fields(rule)
		prefix, bits := strings.TrimSuffix(f[1], "/"), 32
		if f[0] != "-d" {
			continue
		}
		fmt.Sscanf(strings.ReplaceAll(prefix, "/", " "), "%s %d", &prefix, &bits)
		if !strings.HasPrefix(fmt.Sprintf("%x", key), prefix[:bits/4]) {
			continue
		}
		if f[3] == "SVC" {
			return n
		}
		return n + met(chains, f[3], key)
	}
	return n
}
