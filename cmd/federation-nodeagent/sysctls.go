package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
)

// sysctls configure the kernel's forwarding and its table of connections, with kube-proxy's flags and defaults.
type sysctls struct {
	dir                    string
	maxPerCore, least      int32
	established, closeWait time.Duration
	udp, udpStream         time.Duration
	liberal                bool
}

func (s *sysctls) addFlags(f *pflag.FlagSet) {
	f.StringVar(&s.dir, "sysctl-dir", "/proc/sys", "`DIRECTORY` with the node's sysctls; a container has its own /proc/sys read-only, and needs the node's net/ mounted elsewhere")
	f.Int32Var(&s.maxPerCore, "conntrack-max-per-core", 32<<10, "`NUMBER` of connections, for each CPU, that the kernel is to have room for, up to 1048576 in all; 0: leave its limit, which is never lowered, as it is")
	f.Int32Var(&s.least, "conntrack-min", 128<<10, "least `NUMBER` of connections that the kernel is to have room for, however few the CPUs")
	f.DurationVar(&s.established, "conntrack-tcp-timeout-established", 24*time.Hour, "`TIME` after which an idle TCP connection is forgotten; 0: leave as it is")
	f.DurationVar(&s.closeWait, "conntrack-tcp-timeout-close-wait", time.Hour, "`TIME` after which a TCP connection that one side has closed is forgotten; 0: leave as it is")
	f.BoolVar(&s.liberal, "conntrack-tcp-be-liberal", false, "let TCP packets pass that are outside of the window")
	f.DurationVar(&s.udp, "conntrack-udp-timeout", 0, "`TIME` after which an unanswered UDP flow is forgotten; 0: leave as it is")
	f.DurationVar(&s.udpStream, "conntrack-udp-timeout-stream", 0, "`TIME` after which an answered UDP flow is forgotten; 0: leave as it is")
}

func (s *sysctls) check() error {
	for flag, v := range map[string]int64{
		"max-per-core": int64(s.maxPerCore), "min": int64(s.least), "tcp-timeout-established": int64(s.established),
		"tcp-timeout-close-wait": int64(s.closeWait), "udp-timeout": int64(s.udp), "udp-timeout-stream": int64(s.udpStream),
	} {
		if v < 0 {
			return fmt.Errorf("--conntrack-%s: want 0 or more", flag)
		}
	}
	return nil
}

// setting is a sysctl and its desired value.
type setting struct {
	name  string // below the directory of sysctls
	value int
	least bool // more is as good
}

// conntrack returns the settings of the table of connections for a number of CPUs.
func (s *sysctls) conntrack(cpus int) (out []setting) {
	const most = 1 << 20 // kube-proxy's, as each takes some 300 bytes
	add := func(name string, value int, least bool) {
		if value > 0 {
			out = append(out, setting{"net/netfilter/nf_conntrack_" + name, value, least})
		}
	}
	if s.maxPerCore > 0 {
		room := max(min(int(s.maxPerCore)*cpus, most), int(s.least))
		add("max", room, true)
		add("buckets", room/4, true)
	}
	add("tcp_timeout_established", int(s.established.Seconds()), false)
	add("tcp_timeout_close_wait", int(s.closeWait.Seconds()), false)
	add("udp_timeout", int(s.udp.Seconds()), false)
	add("udp_timeout_stream", int(s.udpStream.Seconds()), false)
	if s.liberal {
		add("tcp_be_liberal", 1, false)
	}
	return out
}

// apply sets everything. That packets are not sent on is an error, as nothing would work; for the rest a line is logged.
func (s *sysctls) apply() error {
	if err := s.set(setting{"net/ipv4/ip_forward", 1, false}); err != nil {
		return fmt.Errorf("this node must send packets on: %w", err)
	}
	if err := s.set(setting{"net/ipv6/conf/all/forwarding", 1, false}); err != nil && !errors.Is(err, os.ErrNotExist) { // there may be no IPv6
		return fmt.Errorf("this node must send packets on: %w", err)
	}
	for _, want := range s.conntrack(runtime.NumCPU()) {
		if err := s.set(want); err != nil {
			klog.ErrorS(err, "Cannot configure the table of connections; set this on the node, or --conntrack-… to 0")
		}
	}
	return nil
}

// set writes a sysctl, unless it is as it should be.
func (s *sysctls) set(want setting) error {
	file := filepath.Join(s.dir, want.name)
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	is, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err == nil && (is == want.value || want.least && is > want.value) {
		return nil
	}
	if err := os.WriteFile(file, strconv.AppendInt(nil, int64(want.value), 10), 0); err != nil {
		return fmt.Errorf("%s is %d, should be %d, and cannot be changed (in a container, see --sysctl-dir): %w",
			strings.ReplaceAll(want.name, "/", "."), is, want.value, err)
	}
	klog.InfoS("Set sysctl", "name", strings.ReplaceAll(want.name, "/", "."), "from", is, "to", want.value)
	return nil
}
