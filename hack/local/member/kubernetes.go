package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	apiserveroptions "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	controllermanageroptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	scheduleroptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// The functions New…Command of these programs are not used: each installs a signal handler, and the
// second one panics.

// nodeGracePeriod is how long a node may be silent before its pods count as lost. The simulated
// nodes live and stop with the controller that watches them, so they are never lost alone; with the
// default, a cluster that was stopped (SIGSTOP) for a minute would wake up, find all nodes silent,
// and mark all pods unready, which nobody would undo: no kubelet looks at them again.
const nodeGracePeriod = "24h"

func parse(sets cliflag.NamedFlagSets, args ...string) error {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, fs := range sets.FlagSets {
		all.AddFlagSet(fs)
	}
	return all.Parse(args)
}

func (c *cluster) runAPIServer(ctx context.Context) error {
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	o := apiserveroptions.NewServerRunOptions()
	if err := parse(o.Flags(), c.apiServerFlags()...); err != nil {
		return err
	}
	if err := o.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return err
	}
	completed, err := o.Complete(ctx)
	if err != nil {
		return err
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return utilerrors.NewAggregate(errs)
	}
	if err := apiserver.Run(ctx, completed); err != nil {
		return err
	}
	return errors.New("finished")
}

func (c *cluster) apiServerFlags() []string {
	return append(c.apiAddressFlags(),
		"--etcd-servers="+etcdEndpoint,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.Port),
		"--tls-cert-file="+servingName+".crt",
		"--tls-private-key-file="+servingName+".key",
		"--client-ca-file="+caName+".crt",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--service-cluster-ip-range="+c.ServiceCIDR,
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file="+saKeyFile,
		"--service-account-signing-key-file="+saKeyFile,
		"--requestheader-client-ca-file="+caName+".crt",
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file="+frontProxyName+".crt",
		"--proxy-client-key-file="+frontProxyName+".key",
		"--shutdown-delay-duration=0s",
		"--profiling=false",
	)
}

// apiAddressFlags say where nodes find the API and how it finds kubelets. Nobody asks simulated ones.
func (c *cluster) apiAddressFlags() []string {
	if !c.Real.on() {
		return []string{"--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none"} // it refuses loopback addresses
	}
	return []string{
		"--advertise-address=" + c.apiAddress().String(),
		"--egress-selector-config-file=" + egressFile,
		"--kubelet-client-certificate=" + adminName + ".crt",
		"--kubelet-client-key=" + adminName + ".key",
		"--kubelet-preferred-address-types=InternalIP",
	}
}

func (c *cluster) runControllerManager(ctx context.Context) error {
	o, err := controllermanageroptions.NewKubeControllerManagerOptions()
	if err != nil {
		return err
	}
	all, off, aliases := controllermanager.KnownControllers(), controllermanager.ControllersDisabledByDefault(), controllermanager.ControllerAliases()
	flags := append(c.clientFlags(),
		"--allocate-node-cidrs=true",
		"--cluster-cidr="+c.PodCIDR,
		"--service-cluster-ip-range="+c.ServiceCIDR,
		fmt.Sprintf("--node-cidr-mask-size=%d", nodeCIDRBits),
		"--root-ca-file="+caName+".crt",
		"--cluster-signing-cert-file="+caName+".crt",
		"--cluster-signing-key-file="+caName+".key",
		"--service-account-private-key-file="+saKeyFile,
	)
	if !c.Real.on() {
		flags = append(flags, "--node-monitor-grace-period="+nodeGracePeriod)
	}
	if err := parse(o.Flags(all, off, aliases), flags...); err != nil {
		return err
	}
	config, err := o.Config(ctx, all, off, aliases)
	if err != nil {
		return err
	}
	return controllermanager.Run(ctx, config.Complete())
}

func (c *cluster) runScheduler(ctx context.Context) error {
	o := scheduleroptions.NewOptions()
	if err := parse(*o.Flags, c.clientFlags()...); err != nil {
		return err
	}
	config, sched, err := scheduler.Setup(ctx, o)
	if err != nil {
		return err
	}
	return scheduler.Run(ctx, config, sched)
}

// clientFlags are those that both clients of the API take: one of each kind runs, nobody asks them anything.
func (c *cluster) clientFlags() []string {
	return []string{
		"--kubeconfig=" + c.Kubeconfig,
		"--leader-elect=false",
		"--secure-port=0",
		"--authentication-skip-lookup=true",
		"--kube-api-qps=200",
		"--kube-api-burst=400",
	}
}
