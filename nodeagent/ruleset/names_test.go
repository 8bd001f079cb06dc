package ruleset

import (
	"net/netip"
	"testing"
)

func TestNamesAreTheOnesOfTheSources(t *testing.T) {
	es1 := PortID{Key{"default", "es1"}, "http", "TCP"}
	if got := es1.Hash(); got != "LAS23QA33HXV7KBL" {
		t.Errorf("%s: %s", es1, got)
	}
	if got := es1.BackendHash(netip.MustParseAddrPort("10.180.2.11:9200")); got != "G4AX7RHRQVIX7P25" {
		t.Errorf("endpoint of %s: %s", es1, got)
	}
	nginx := PortID{Key{"default", "k8s-nginx-cluster"}, "", "TCP"}
	if got := nginx.Hash(); got != "3FL7SSXCKTCXAYCR" {
		t.Errorf("%s: %s", nginx, got)
	}
}
