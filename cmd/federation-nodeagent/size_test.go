package main

import (
	"os/exec"
	"strings"
	"testing"
)

// The agent runs on every node: clients of all kinds would double its code, and add a quarter to its memory.
func TestTheAgentHasNoClientsOfAllKinds(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	if len(packages) < 300 {
		t.Fatalf("%d packages: not all are listed", len(packages))
	}
	for _, p := range packages {
		if p == "k8s.io/client-go/kubernetes" || p == "k8s.io/client-go/informers" || p == "k8s.io/client-go/kubernetes/scheme" {
			t.Errorf("%s is linked", p)
		}
	}
}
