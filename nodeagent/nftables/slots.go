package nftables

import (
	"net/netip"

	"federation/nodeagent/ruleset"
)

// maxSlots bounds the slots of one pool; if it has more backends, each has one.
const maxSlots = 4096

// slotsFor assigns slots to backends by weight, and keeps existing assignments as far as possible, so that few change:
// new backends replace removed ones, and holes are filled from the end.
func slotsFor(pool []ruleset.Backend, have []netip.AddrPort) []netip.AddrPort {
	missing := map[netip.AddrPort]int{}
	total := 0
	for i, n := range slotCounts(pool) {
		missing[pool[i].Addr] += n
		total += n
	}
	var free []int
	slots := make([]netip.AddrPort, total)
	for i := range slots {
		if i < len(have) && missing[have[i]] > 0 {
			slots[i] = have[i]
			missing[have[i]]--
		} else {
			free = append(free, i)
		}
	}
	for _, b := range pool {
		for ; missing[b.Addr] > 0; missing[b.Addr]-- {
			slots[free[0]], free = b.Addr, free[1:]
		}
	}
	return slots
}

// slotCounts returns how many slots each backend gets: its weight divided by the common divisor of all weights, and less
// exactly if that would exceed maxSlots.
func slotCounts(pool []ruleset.Backend) []int {
	common, sum := uint64(0), uint64(0)
	for _, b := range pool {
		common = gcd(uint64(b.Weight), common)
	}
	for _, b := range pool {
		sum += uint64(b.Weight) / common
	}
	out := make([]int, len(pool))
	for i, b := range pool {
		n := uint64(b.Weight) / common
		if sum > maxSlots {
			n = (n*maxSlots + sum/2) / sum
		}
		out[i] = max(1, int(n))
	}
	return out
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, 1)
}
