package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"federation/clusterregistry/join/addons"
)

func TestFlagsOfTheNodeAgent(t *testing.T) {
	a := &nodeAgent{}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	a.addFlags(flags)
	for args, want := range map[string]string{
		"--allow-blackhole": "--allow-blackhole needs --with-nodeagent",
		"--with-nodeagent --allow-blackhole --nodeagent-mode=iptables":                                    "--allow-blackhole needs --nodeagent-mode nftables",
		"--with-nodeagent --allow-blackhole --nodeagent-mode=nftables --nodeagent-args=--scope=federated": "and no --nodeagent-args=--scope=federated",
	} {
		if err := flags.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		if err := a.check(flags); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
		*a = nodeAgent{NodeAgent: addons.NodeAgent{Mode: "nftables"}}
		flags = pflag.NewFlagSet("", pflag.ContinueOnError)
		a.addFlags(flags)
	}
}
