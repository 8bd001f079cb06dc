package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

// options say what node this is.
type options struct {
	name                      string
	dataDir, bin, images      string
	address, gateway, podCIDR string
	clusterCIDR, clusterDNS   string
	cgroup                    string
	proxy, federation         string
}

func main() {
	o := &options{}
	pflag.StringVar(&o.name, "name", "", "name of the node")
	pflag.StringVar(&o.dataDir, "data-dir", "", "directory that holds ca.crt, kubelet.kubeconfig and proxy.kubeconfig, and all that the node keeps")
	pflag.StringVar(&o.bin, "bin", "", "directory of kubelet and the service proxies")
	pflag.StringVar(&o.images, "images", "", "directory of images, as tar files")
	pflag.StringVar(&o.address, "address", "", "address of eth0 with its prefix length")
	pflag.StringVar(&o.gateway, "gateway", "", "address of the default route")
	pflag.StringVar(&o.podCIDR, "pod-cidr", "", "network of this node's pods")
	pflag.StringVar(&o.clusterCIDR, "cluster-cidr", "", "network of all pods")
	pflag.StringVar(&o.clusterDNS, "cluster-dns", "", "address of the cluster's DNS server")
	pflag.StringVar(&o.cgroup, "cgroup", "", "cgroup of the pods, in every hierarchy")
	pflag.StringVar(&o.federation, "federation-uid", "", "federation that our agent believes")
	pflag.StringVar(&o.proxy, "service-proxy", "iptables", "what makes Services work: iptables or nftables (our agent in that mode), kube-proxy-iptables, kube-proxy-nftables, federated (kube-proxy, and our agent beside it in the scope federated), or none")
	pflag.Parse()
	err := o.run()
	fmt.Fprintf(os.Stderr, "node %s: error: %v\n", o.name, err)
	os.Exit(1)
}

// run returns when a part of the node ends, which ends the node.
func (o *options) run() error {
	if os.Getpid() != 1 {
		return fmt.Errorf("process %d: must be the first of a process namespace; the program member starts it", os.Getpid())
	}
	for _, step := range []func() error{o.mounts, o.network, o.cgroups, o.configure} {
		if err := step(); err != nil {
			return err
		}
	}
	running := map[int]string{}
	if err := start(running, "containerd", "--config", "/run/node/containerd.toml"); err != nil {
		return err
	}
	if err := o.importImages(); err != nil {
		return err
	}
	if err := start(running, "/run/bin/kubelet", o.kubeletFlags()...); err != nil {
		return err
	}
	for _, command := range o.proxyCommands() {
		if err := start(running, command[0], command[1:]...); err != nil {
			return err
		}
	}
	return reap(running)
}

// start starts a program whose output goes to a file of its own.
func start(running map[int]string, program string, flags ...string) error {
	path := program
	if !filepath.IsAbs(path) {
		path = "/usr/bin/" + program
	}
	log, err := os.OpenFile("/run/node/"+filepath.Base(program)+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has its own handle
	p, err := os.StartProcess(path, append([]string{program}, flags...), &os.ProcAttr{Files: []*os.File{nil, log, log}, Env: os.Environ()})
	if err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	running[p.Pid] = program
	return p.Release()
}

// reap takes in all processes that end, as the first process must, until one ends without which this is no node.
func reap(running map[int]string) error {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		if name, ok := running[pid]; ok {
			return fmt.Errorf("%s ended: exit code %d, signal %v", name, status.ExitStatus(), status.Signal())
		}
	}
}

// importImages waits until containerd answers, and gives it the images.
func (o *options) importImages() error {
	tars, err := filepath.Glob("/run/images/*.tar")
	if err != nil {
		return err
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat("/run/containerd/containerd.sock"); err == nil {
			break
		}
		if time.Now().After(end) {
			return errors.New("containerd does not answer; see containerd.log")
		}
	}
	for _, tar := range tars {
		if out, err := exec.Command("ctr", "--namespace=k8s.io", "images", "import", tar).CombinedOutput(); err != nil {
			return fmt.Errorf("image %s: %w: %s", tar, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}
