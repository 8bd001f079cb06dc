package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"federation/hack/local/uplink"
	"federation/hack/manifests"
)

// providerUser is the account of manifests.LoadBalancerProvider.
const providerUser, providerGroup = "system:serviceaccount:kube-system:federation-lb-provider", "system:serviceaccounts"

// providerAddress is that of the machine beside the nodes on which the load balancer provider runs.
func (c *cluster) providerAddress() netip.Addr { return c.Real.address(253) }

// startProvider has federation-lb give Services of type LoadBalancer their addresses, and lead these to the nodes, as its users have it: on a
// machine beside the nodes, with no rights but its own. It ends with ctx or with this process.
func (c *cluster) startProvider(ctx context.Context, config *rest.Config) error {
	if err := apply(ctx, config, manifests.LoadBalancerProvider); err != nil {
		return fmt.Errorf("its rights: %w", err)
	}
	for _, pool := range c.pools {
		if err := c.Real.internet.routeToSegment(pool); err != nil {
			return err
		}
	}
	dir := filepath.Join(c.DataDir, "provider")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	kubeconfig, err := c.credential(filepath.Join(dir, "provider"), providerUser, providerGroup)
	if err != nil {
		return err
	}
	c.run(ctx, &c.controllers, "load balancer provider", func(ctx context.Context) error { return c.runProvider(ctx, dir, kubeconfig) })
	return nil
}

// apply makes the objects of a manifest be as they are there.
func apply(ctx context.Context, config *rest.Config, manifest []byte) error {
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	for documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096); ; {
		obj := &unstructured.Unstructured{}
		if err := documents.Decode(&obj.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		resource, _ := meta.UnsafeGuessKindToResource(obj.GroupVersionKind())
		if _, err := d.Resource(resource).Namespace(obj.GetNamespace()).Apply(ctx, obj.GetName(), obj, metav1.ApplyOptions{FieldManager: "member", Force: true}); err != nil {
			return fmt.Errorf("%s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
}

// runProvider runs the provider until ctx ends. Its machine is gone when it has ended.
func (c *cluster) runProvider(ctx context.Context, dir, kubeconfig string) error {
	log, err := os.OpenFile(filepath.Join(dir, "federation-lb.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has its own handle
	name := c.Name + "-lb"
	if err := c.Real.internet.enterMachine(name, c.providerAddress()); err != nil {
		return err
	}
	for _, which := range []string{"all", uplink.Name} {
		if err := os.WriteFile("/proc/sys/net/ipv4/conf/"+which+"/send_redirects", []byte("0"), 0); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, filepath.Join(c.Real.bin, "federation-lb"), "provider", "--kubeconfig="+kubeconfig, "--name="+name,
		"--pools="+strings.Join(c.LBCIDRs, ","), "--interface="+uplink.Name, "--default")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL} // at the death of this thread
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w; see %s", err, dir)
	}
	return errors.New("finished")
}
