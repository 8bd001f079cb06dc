package nftables

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"federation/nodeagent/ruleset"
)

func pool(weights ...uint32) (out []ruleset.Backend) {
	for i, w := range weights {
		out = append(out, ruleset.Backend{Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 80), Weight: w})
	}
	return out
}

func counts(slots []netip.AddrPort) map[netip.AddrPort]int {
	out := map[netip.AddrPort]int{}
	for _, s := range slots {
		out[s]++
	}
	return out
}

func TestWeightsAreSlots(t *testing.T) {
	for _, c := range []struct {
		weights []uint32
		want    []int
	}{
		{[]uint32{1, 1, 1}, []int{1, 1, 1}},
		{[]uint32{300, 100}, []int{3, 1}},
		{[]uint32{5}, []int{1}},
		{[]uint32{1, 4096 * 3}, []int{1, 4096}}, // too many slots: as near as may be, and at least one
	} {
		backends := pool(c.weights...)
		got := counts(slotsFor(backends, nil))
		for i, b := range backends {
			if got[b.Addr] != c.want[i] {
				t.Errorf("weights %v: %d slots for the one of weight %d, want %d", c.weights, got[b.Addr], b.Weight, c.want[i])
			}
		}
	}
}

// Kept backends keep their slots: a change alters at most as many slots as backends were added and removed, counted
// twice, because the last may have to fill the hole of another.
func TestFewSlotsChange(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	all := pool(make([]uint32, 40)...)
	for i := range all {
		all[i].Weight = 1
	}
	var have []netip.AddrPort
	was := map[netip.AddrPort]bool{}
	for step := range 500 {
		var backends []ruleset.Backend
		changed, is := 0, map[netip.AddrPort]bool{}
		for _, b := range all {
			in := was[b.Addr]
			if r.IntN(10) == 0 {
				in = !in
				changed++
			}
			if in {
				backends, is[b.Addr] = append(backends, b), true
			}
		}
		slots := slotsFor(backends, have)
		differ := 0
		for i := range max(len(slots), len(have)) {
			if i >= len(slots) || i >= len(have) || slots[i] != have[i] {
				differ++
			}
		}
		if differ > 2*changed || len(slots) != len(backends) || len(counts(slots)) != len(backends) {
			t.Fatalf("step %d: %d backends changed, %d slots differ; %d slots for %d backends", step, changed, differ, len(slots), len(backends))
		}
		have, was = slots, is
	}
}
