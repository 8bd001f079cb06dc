package main

import (
	"testing"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/health"
	"federation/controllers/failover/plan"
)

// TestFailoverKnowsTheRegistrysWords: neither imports the other, they meet in the reasons of the condition Ready.
func TestFailoverKnowsTheRegistrysWords(t *testing.T) {
	for reason, unclear := range map[string]bool{
		health.ReasonCredentialRejected: true, health.ReasonNotTrusted: true, health.ReasonMisconfigured: true,
		v1beta1.ReasonClusterNotReachable: false, v1beta1.ReasonClusterNotReady: false,
	} {
		if plan.Unclear(reason) != unclear {
			t.Errorf("%s: says nothing about what runs there: %t, want %t", reason, !unclear, unclear)
		}
	}
}
