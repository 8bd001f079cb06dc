package main

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Options say what cluster to run, and where.
type Options struct {
	Name, Region, Zone string
	DataDir            string
	Kubeconfig         string // written at each start
	Port               int    // of the API, on 127.0.0.1
	Nodes              int
	LBCIDRs            []string // load balancer addresses, handed out in this order
	ServiceCIDR        string
	PodCIDR            string
	Real               real

	pools []netip.Prefix
}

func parseOptions(args []string) (*Options, error) {
	o := &Options{}
	fs := pflag.NewFlagSet("member", pflag.ContinueOnError)
	fs.StringVar(&o.Name, "name", "", "name of the cluster, a DNS label")
	fs.StringVar(&o.DataDir, "data-dir", "", "directory that holds all of the cluster")
	fs.IntVar(&o.Port, "port", 0, "port of the API on 127.0.0.1")
	fs.StringVar(&o.Region, "region", "", "region of the nodes, a DNS label")
	fs.StringVar(&o.Zone, "zone", "", "zone of the nodes, a DNS label")
	fs.IntVar(&o.Nodes, "nodes", 3, "number of nodes")
	fs.StringSliceVar(&o.LBCIDRs, "lb-cidr", nil, "networks of the load balancer addresses, in the order in which they are used")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", "", "where to write the admin kubeconfig (default DATA-DIR/kubeconfig)")
	fs.StringVar(&o.ServiceCIDR, "service-cidr", "10.96.0.0/16", "network of the Services' cluster addresses")
	fs.StringVar(&o.PodCIDR, "pod-cidr", "10.128.0.0/14", fmt.Sprintf("network of the pods; each node gets a /%d", nodeCIDRBits))
	o.Real.addFlags(fs)
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: member takes only flags", fs.Arg(0))
	}
	return o, o.complete()
}

func (o *Options) complete() (err error) {
	for _, l := range []struct{ flag, value string }{{"name", o.Name}, {"region", o.Region}, {"zone", o.Zone}} {
		if problems := validation.IsDNS1123Label(l.value); len(problems) > 0 {
			return fmt.Errorf("--%s=%q: %s", l.flag, l.value, strings.Join(problems, "; "))
		}
	}
	if o.Port < 1 || o.Port > 65535 {
		return fmt.Errorf("--port=%d: must be from 1 to 65535", o.Port)
	}
	if o.Nodes < 1 || o.Nodes > 250 {
		return fmt.Errorf("--nodes=%d: must be from 1 to 250 (the pod network has room for 256 nodes)", o.Nodes)
	}
	if o.DataDir == "" {
		return fmt.Errorf("--data-dir: must be set")
	}
	if o.pools, err = parsePools(o.LBCIDRs); err != nil {
		return fmt.Errorf("--lb-cidr: %w", err)
	}
	for flag, value := range map[string]string{"service-cidr": o.ServiceCIDR, "pod-cidr": o.PodCIDR} {
		if p, err := netip.ParsePrefix(value); err != nil || !p.Addr().Is4() {
			return fmt.Errorf("--%s=%q: must be an IPv4 network such as 10.96.0.0/16", flag, value)
		}
	}
	if o.DataDir, err = filepath.Abs(o.DataDir); err != nil {
		return err
	}
	if o.Kubeconfig == "" {
		o.Kubeconfig = filepath.Join(o.DataDir, "kubeconfig")
	}
	if o.Kubeconfig, err = filepath.Abs(o.Kubeconfig); err != nil {
		return err
	}
	return o.Real.complete()
}

func (o *Options) url() string { return fmt.Sprintf("https://127.0.0.1:%d", o.Port) }

// enterDataDir makes the data directory, locks it against a second process and changes into it:
// the path of a unix socket must be short, and a relative one is, however deep the checkout lies.
func (o *Options) enterDataDir() (unlock func(), err error) {
	if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
		return nil, err
	}
	if err := os.Chdir(o.DataDir); err != nil {
		return nil, err
	}
	f, err := os.OpenFile("lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if !lock(f, 5*time.Second) {
		_ = f.Close()
		return nil, fmt.Errorf("--data-dir=%s: another member runs on it", o.DataDir)
	}
	return func() { _ = f.Close() }, nil
}

// lock tries for a while: a process that was just killed takes a moment to let go of its files.
func lock(f *os.File, patience time.Duration) bool {
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}
