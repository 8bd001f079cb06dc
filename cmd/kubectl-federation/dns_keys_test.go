package main

import (
	"strings"
	"testing"
	"time"

	"federation/controllers/dnskeys"
	"federation/controllers/dnskeys/plan"
	"federation/dnsprovider/dnssec"
)

// TestKeysAreShown shows a rollover, before and after the parent zone should have the new key.
func TestKeysAreShown(t *testing.T) {
	old, err := dnssec.NewKey(dnssec.Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	next, err := dnssec.NewKey(dnssec.Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	since := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ring := dnskeys.Ring{
		Signer: &dnssec.Signer{Zone: "example.test.", Key: next, More: []dnssec.Key{old}, Submit: []uint16{next.Tag()}},
		State: plan.State{
			Keys:        []plan.Key{{Tag: old.Tag(), Phase: plan.Retired, Since: since}, {Tag: next.Tag(), Phase: plan.Active, Since: since}},
			ParentSince: since, ParentSecure: true, Waits: "key 1 goes",
		},
	}
	var out strings.Builder
	if err := printDS(&out, dnskeys.ViewOf(ring)); err != nil || out.String() != next.DS("example.test.").String()+"\n" {
		t.Errorf("ds printed %q, %v, want the record of the new key alone", out.String(), err)
	}
	out.Reset()
	if err := printKeys(&out, dnskeys.ViewOf(ring)); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if f := strings.Fields(lines[1]); len(f) != 5 || f[1] != "ED25519" || f[2] != "Active" || f[3] != "2026-11-21T12:00:00Z" || f[4] != "true" {
		t.Errorf("the first key is shown as %q", lines[1])
	}
	if !strings.Contains(out.String(), "Retired") || !strings.Contains(out.String(), "Parent zone: Secure\nNext:       key 1 goes\n") {
		t.Errorf("keys printed\n%s", out.String())
	}
	ring.Signer.Submit, ring.State.ParentSince = []uint16{}, time.Time{}
	out.Reset()
	if err := printDS(&out, dnskeys.ViewOf(ring)); err == nil || !strings.Contains(err.Error(), "not yet: key 1 goes") || out.Len() > 0 || dnskeys.ViewOf(ring).ParentZone != "Unknown" {
		t.Errorf("before the parent zone may be told: %q, %v", out.String(), err)
	}
}
