package main

import (
	"errors"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
)

// foreign is a flag of kube-proxy that we do not have: it says what to do instead.
type foreign struct {
	name, say string
	harmless  bool // it changes nothing here, so that it may stay
}

// foreigns are the flags of kube-proxy 1.36 without meaning here, except those of logging libraries.
var foreigns = []foreign{
	{"config", "a KubeProxyConfiguration is not read: give what it says as flags, which have kube-proxy's names", false},
	{"write-config-to", "there is no configuration file; the flags are all", false},
	{"healthz-port", "use --healthz-bind-address", false},
	{"metrics-port", "use --metrics-bind-address", false},
	{"iptables-masquerade-bit", "the bit is 14 (0x4000), as it is with kube-proxy's default", false},
	{"ipvs-scheduler", "there is no mode ipvs: new connections get equal shares, or shares by weight", false},
	{"ipvs-exclude-cidrs", "there is no mode ipvs", false},
	{"ipvs-min-sync-period", "there is no mode ipvs", false},
	{"ipvs-strict-arp", "there is no mode ipvs, and cluster IPs are at no interface", false},
	{"ipvs-sync-period", "there is no mode ipvs", false},
	{"ipvs-tcp-timeout", "there is no mode ipvs", false},
	{"ipvs-tcpfin-timeout", "there is no mode ipvs", false},
	{"ipvs-udp-timeout", "there is no mode ipvs", false},
	{"bind-address", "nothing is bound to it; --nodeport-addresses says where node ports are served", true},
	{"bind-address-hard-fail", "an address that is taken always ends the agent", true},
	{"config-sync-period", "the API server tells of every change", true},
	{"feature-gates", "there are none", true},
	{"iptables-localhost-nodeports", "node ports are never served at loopback addresses", true},
	{"kube-api-content-type", "it is protobuf", true},
	{"oom-score-adj", "the kubelet or the service manager sets it", true},
	{"profiling", "there is none", true},
	{"show-hidden-metrics-for-version", "no metric is hidden", true},
}

// addForeignFlags accepts flags of kube-proxy, so that whoever replaces it learns what to do about each.
func addForeignFlags(f *pflag.FlagSet) {
	for _, flag := range foreigns {
		f.AddFlag(&pflag.Flag{Name: flag.name, Value: flag, NoOptDefVal: "true", Hidden: true})
	}
}

// Set returns an error, or a line of the log.
func (f foreign) Set(string) error {
	if !f.harmless {
		return errors.New(f.say)
	}
	klog.InfoS("A flag of kube-proxy means nothing here", "flag", "--"+f.name, "because", f.say)
	return nil
}

// String returns "": it has no value.
func (f foreign) String() string { return "" }

// Type returns what pflag calls the value.
func (f foreign) Type() string { return "of-kube-proxy" }
