package main

import (
	"strings"

	"federation/apiserver/apis/federation/v1beta1"
)

// info is what the controllers say of how the federation is set up.
func (o *controllersOptions) info() v1beta1.Info {
	return v1beta1.Info{
		Name: o.name, DNSZone: o.zone, DNSTTL: o.dnsTTL,
		FailoverMaxZones: o.failover.Settings.MaxZones, FailoverWindow: o.failover.Settings.Window,
		CrossClusterEndpoints: o.endpoints, ClusterSetIPRanges: strings.Join(o.clusterSetIPs, ","), MemberTokenLifetime: o.memberTokens, PublicAddressesOnly: o.lookups.PublicOnly(),
	}
}
