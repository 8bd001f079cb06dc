package main

import "testing"

func TestAddressesOfRealNodes(t *testing.T) {
	c := &cluster{Options: &Options{ServiceCIDR: "10.97.0.0/16", PodCIDR: "10.132.0.0/14", Real: real{number: 1}}}
	for what, is := range map[string][2]string{
		"API":               {c.apiAddress().String(), "10.64.1.254"},
		"second node":       {c.Real.address(2).String(), "10.64.1.2"},
		"DNS Service":       {c.serviceAddress(10).String(), "10.97.0.10"},
		"first node's pods": {c.podsOf(1).String(), "10.132.0.0/22"},
		"200th node's pods": {c.podsOf(200).String(), "10.135.28.0/22"},
	} {
		if is[0] != is[1] {
			t.Errorf("%s: got %s, want %s", what, is[0], is[1])
		}
	}
}
