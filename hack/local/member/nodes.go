package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"federation/hack/local/uplink"
)

// enterInternet makes the API reachable for real nodes, and these for it.
func (c *cluster) enterInternet() error {
	if !c.Real.on() {
		return nil
	}
	if err := c.Real.internet.addAddress(c.apiAddress()); err != nil {
		return err
	}
	port := strconv.Itoa(c.Port)
	if err := c.Real.internet.forward(net.JoinHostPort(c.apiAddress().String(), port), net.JoinHostPort("127.0.0.1", port)); err != nil {
		return err
	}
	return c.Real.internet.serveEgress()
}

// startNodes leads the networks of pods to their nodes, and starts these. They end with ctx or with this process.
func (c *cluster) startNodes(ctx context.Context) error {
	for i := 1; i <= c.Nodes; i++ {
		if err := c.Real.internet.route(c.podsOf(i), c.Real.address(i)); err != nil {
			return err
		}
		dir, err := c.nodeFiles(i)
		if err != nil {
			return fmt.Errorf("node %s: %w", c.nodeName(i), err)
		}
		c.run(ctx, &c.controllers, c.nodeName(i), func(ctx context.Context) error { return c.runNode(ctx, i, dir) })
	}
	return nil
}

// nodeFiles makes the node's directory, with its credentials.
func (c *cluster) nodeFiles(i int) (dir string, err error) {
	dir = filepath.Join(c.DataDir, "nodes", c.nodeName(i))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	for name, who := range map[string][2]string{
		"kubelet": {"system:node:" + c.nodeName(i), "system:nodes"},
		"proxy":   {"system:kube-proxy", "system:node-proxier"}, // the user has what a service proxy needs
	} {
		if _, err := c.credential(filepath.Join(dir, name), who[0], who[1]); err != nil {
			return "", err
		}
	}
	pem, err := os.ReadFile(caName + ".crt")
	if err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "ca.crt"), pem, 0o600)
}

// credential makes a user's certificate and, beside it, a kubeconfig for programs in the internet.
func (c *cluster) credential(pair, user, group string) (kubeconfig string, err error) {
	ca, err := loadCA()
	if err != nil {
		return "", err
	}
	if err := ca.issue(pair, client(user, group)); err != nil {
		return "", err
	}
	kubeconfig = pair + ".kubeconfig"
	return kubeconfig, c.writeKubeconfigOf(pair, "https://"+net.JoinHostPort(c.apiAddress().String(), strconv.Itoa(c.Port)), kubeconfig)
}

// runNode runs the i-th node until ctx ends.
func (c *cluster) runNode(ctx context.Context, i int, dir string) error {
	runtime.LockOSThread() // Pdeathsig is about the death of this thread
	defer runtime.UnlockOSThread()
	log, err := os.OpenFile(filepath.Join(dir, "node.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has its own handle
	cmd := exec.CommandContext(ctx, filepath.Join(c.Real.bin, "membernode"), "--name="+c.nodeName(i), "--data-dir="+dir,
		"--bin="+c.Real.bin, "--images="+c.Real.images, "--cgroup="+c.Real.cgroup+"-"+c.nodeName(i),
		"--address="+c.Real.address(i).String()+"/16", "--gateway="+uplink.InternetAddress, "--service-proxy="+c.Real.serviceProxy, "--federation-uid="+c.Real.federation,
		"--pod-cidr="+c.podsOf(i).String(), "--cluster-cidr="+c.PodCIDR, "--cluster-dns="+c.serviceAddress(10).String())
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid: true, Pdeathsig: syscall.SIGKILL,
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := c.Real.internet.plug(c.nodeName(i), cmd.Process.Pid); err != nil {
		_ = cmd.Process.Kill() // it waits for the interface
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%w; see %s", err, dir)
	}
	return nil
}
