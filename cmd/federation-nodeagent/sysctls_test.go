package main

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// written applies the sysctls of flags to a directory with other values, and returns the differences.
func written(t *testing.T, have map[string]string, flags ...string) (map[string]string, error) {
	t.Helper()
	s, dir := &sysctls{}, t.TempDir()
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	s.addFlags(f)
	if err := f.Parse(append(flags, "--sysctl-dir="+dir)); err != nil {
		t.Fatal(err)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	for name, value := range have {
		file := filepath.Join(dir, "net", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	err := s.apply()
	now := map[string]string{}
	for name, value := range have {
		text, err := os.ReadFile(filepath.Join(dir, "net", name))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(string(text)); got != value {
			now[strings.TrimPrefix(name, "netfilter/nf_conntrack_")] = got
		}
	}
	return now, err
}

func TestSysctls(t *testing.T) {
	kernel := map[string]string{
		"ipv4/ip_forward": "0", "netfilter/nf_conntrack_max": "65536", "netfilter/nf_conntrack_buckets": "65536",
		"netfilter/nf_conntrack_tcp_timeout_established": "432000", "netfilter/nf_conntrack_tcp_timeout_close_wait": "60",
		"netfilter/nf_conntrack_udp_timeout": "30", "netfilter/nf_conntrack_udp_timeout_stream": "120",
		"netfilter/nf_conntrack_tcp_be_liberal": "0",
	}
	for _, c := range []struct {
		says  string
		flags string
		want  map[string]string
	}{
		{"kube-proxy's defaults, and what is enough stays", "--conntrack-max-per-core=1", map[string]string{
			"ipv4/ip_forward": "1", "max": "131072", "tcp_timeout_established": "86400", "tcp_timeout_close_wait": "3600"}},
		{"no more than 2^20", "--conntrack-max-per-core=99999999", map[string]string{
			"ipv4/ip_forward": "1", "max": "1048576", "buckets": "262144", "tcp_timeout_established": "86400", "tcp_timeout_close_wait": "3600"}},
		{"0 leaves all as it is", "--conntrack-max-per-core=0 --conntrack-tcp-timeout-established=0 --conntrack-tcp-timeout-close-wait=0",
			map[string]string{"ipv4/ip_forward": "1"}},
		{"the others", "--conntrack-max-per-core=0 --conntrack-tcp-timeout-established=0 --conntrack-tcp-timeout-close-wait=0 --conntrack-udp-timeout=1m --conntrack-udp-timeout-stream=3m --conntrack-tcp-be-liberal",
			map[string]string{"ipv4/ip_forward": "1", "udp_timeout": "60", "udp_timeout_stream": "180", "tcp_be_liberal": "1"}},
	} {
		got, err := written(t, kernel, strings.Fields(c.flags)...)
		if err != nil || !maps.Equal(got, c.want) {
			t.Errorf("%s: %v %v, want %v", c.says, got, err, c.want)
		}
	}
	if _, err := written(t, kernel, "--conntrack-udp-timeout=-1s"); err == nil || !strings.Contains(err.Error(), "--conntrack-udp-timeout: want 0 or more") {
		t.Errorf("a negative time: %v", err)
	}
}

// A sysctl that cannot be written is an error of one line for forwarding, and none for the table of connections.
func TestSysctlsThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	s := sysctls{dir: dir, maxPerCore: 1}
	if err := s.apply(); err == nil || !strings.Contains(err.Error(), "net/ipv4/ip_forward: no such file") {
		t.Errorf("a directory without sysctls: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "net/ipv4"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/proc/self/stat", filepath.Join(dir, "net/ipv4/ip_forward")); err != nil { // read-only, also for root
		t.Fatal(err)
	}
	if err := s.apply(); err == nil || !strings.Contains(err.Error(), "net.ipv4.ip_forward is 0, should be 1, and cannot be changed") {
		t.Errorf("forwarding cannot be set: %v", err)
	}
}

func TestFlagsOfKubeProxy(t *testing.T) {
	for args, want := range map[string]string{
		"--config=/var/lib/kube-proxy/config.conf": "a KubeProxyConfiguration is not read",
		"--proxy-mode=ipvs":                        `--proxy-mode "ipvs": want iptables or nftables`,
		"--ipvs-scheduler=rr":                      "there is no mode ipvs",
		"--ipvs-strict-arp":                        "there is no mode ipvs",
		"--profiling --bind-address=0.0.0.0 --feature-gates=A=true --oom-score-adj=-999 --proxy-mode=none": `--proxy-mode "none"`, // the others pass
	} {
		c := command()
		c.SetArgs(strings.Fields(args))
		c.SetOut(io.Discard)
		if err := c.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}
