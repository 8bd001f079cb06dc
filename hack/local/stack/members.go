package main

import (
	"fmt"
	"net/netip"
)

// maxMembers is how many members there are names and networks for.
const maxMembers = 30

// member is one member cluster: its name and place, and the networks that are its own.
type member struct {
	name, region, zone string
	lbCIDRs            []string
	serviceCIDR        string
	podCIDR            string
}

var (
	regions = []string{"east", "west", "north", "south"}
	// documentation networks (RFC 5737) are what a person sees in the first three members.
	documentation = []string{"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"}
)

// memberAt is the i-th member, from 0 to maxMembers-1: east-a, east-b, west-a, west-b, north-a and
// so on, two zones of each region in turn.
//
// Load balancer addresses are from documentation networks as far as these go, and then from a /20 of the
// member's own in the network for benchmarks (198.18.0.0/15, RFC 2544).
func memberAt(i int) member {
	round := i / (2 * len(regions))
	region := regions[i/2%len(regions)]
	zone := string(rune('a' + 2*round + i%2))
	m := member{
		name: region + "-" + zone, region: region, zone: zone,
		serviceCIDR: fmt.Sprintf("10.%d.0.0/16", 96+i),
		podCIDR:     fmt.Sprintf("10.%d.0.0/14", 128+4*i),
	}
	if i < len(documentation) {
		m.lbCIDRs = append(m.lbCIDRs, documentation[i])
	}
	own := netip.AddrFrom4([4]byte{198, byte(18 + i/16), byte(i % 16 * 16), 0})
	m.lbCIDRs = append(m.lbCIDRs, netip.PrefixFrom(own, 20).String())
	return m
}
