package main

import (
	"path/filepath"
	"testing"
)

// TestPathsOfRealNodesAreOfWhereTheMemberIsStarted: it changes into its data directory before it uses them.
func TestPathsOfRealNodesAreOfWhereTheMemberIsStarted(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	o, err := parseOptions([]string{"--name=a", "--region=r", "--zone=z", "--port=1", "--data-dir=data", "--lb-cidr=192.0.2.0/24", "--internet=pid", "--bin=programs", "--images=tars"})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{o.Real.internetPID: "pid", o.Real.bin: "programs", o.Real.images: "tars"} {
		if path != filepath.Join(here, want) {
			t.Errorf("got %s, want %s in %s", path, want, here)
		}
	}
}

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
