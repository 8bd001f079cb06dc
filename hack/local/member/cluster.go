package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// cluster is the running cluster: etcd, the API on it, and all the controllers on that.
type cluster struct {
	*Options
	etcd            *embed.Etcd
	stopAPI         context.CancelFunc
	stopControllers context.CancelFunc
	api             sync.WaitGroup
	controllers     sync.WaitGroup
	failed          chan error // the first component that ended though nobody asked it to
}

// start returns when the API is ready and all controllers are started. They run beyond the end of
// ctx, which only ends the start itself: stop ends them, in order.
func (c *cluster) start(ctx context.Context) (err error) {
	c.failed = make(chan error, 1)
	if err := c.Real.open(); err != nil {
		return err
	}
	if err := ensurePKI(c.apiAddresses()); err != nil {
		return fmt.Errorf("certificates in %s: %w", filepath.Join(c.DataDir, "pki"), err)
	}
	if err := c.writeKubeconfig(); err != nil {
		return fmt.Errorf("--kubeconfig=%s: %w", c.Kubeconfig, err)
	}
	if err := c.enterInternet(); err != nil {
		return fmt.Errorf("internet: %w", err)
	}
	if c.etcd, err = startEtcd(); err != nil {
		return err
	}
	var apiCtx, controllerCtx context.Context
	apiCtx, c.stopAPI = context.WithCancel(context.Background())
	controllerCtx, c.stopControllers = context.WithCancel(context.Background())
	c.run(apiCtx, &c.api, "kube-apiserver", c.runAPIServer)
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 200, 400
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := c.waitReady(ctx, kube); err != nil {
		return err
	}
	return c.startControllers(controllerCtx, config, kube)
}

func (c *cluster) startControllers(ctx context.Context, config *rest.Config, kube kubernetes.Interface) error {
	c.run(ctx, &c.controllers, "kube-controller-manager", c.runControllerManager)
	c.run(ctx, &c.controllers, "kube-scheduler", c.runScheduler)
	if err := c.registerNodes(ctx, kube); err != nil {
		return fmt.Errorf("nodes: %w", err)
	}
	if c.Real.on() {
		if err := c.startProvider(ctx, config); err != nil {
			return fmt.Errorf("load balancer provider: %w", err)
		}
		return c.startNodes(ctx)
	}
	if err := c.startCloud(ctx, kube); err != nil {
		return fmt.Errorf("cloud: %w", err)
	}
	return c.startKubelets(ctx)
}

// run runs one component until ctx ends. A component that ends before fails the cluster.
func (c *cluster) run(ctx context.Context, group *sync.WaitGroup, name string, component func(context.Context) error) {
	group.Go(func() {
		err := component(ctx)
		if ctx.Err() != nil {
			return
		}
		select {
		case c.failed <- fmt.Errorf("%s ended: %w", name, err):
		default:
		}
	})
}

// waitReady waits until the API says that it is ready, in steps as short as the start is.
func (c *cluster) waitReady(ctx context.Context, kube kubernetes.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		err := kube.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		if err == nil {
			return nil
		}
		select {
		case failed := <-c.failed:
			return failed
		case <-ctx.Done():
			return fmt.Errorf("kube-apiserver is not ready: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stop ends the controllers, then the API that they talk to, then the store under it. Each gets a
// part of the time; after that the process simply ends, which loses nothing: what is acknowledged
// is written.
func (c *cluster) stop(patience time.Duration) {
	c.stopControllers()
	await(&c.controllers, patience/2)
	c.stopAPI()
	if !await(&c.api, patience/2) {
		os.Exit(0)
	}
	c.etcd.Close()
}

func await(group *sync.WaitGroup, patience time.Duration) bool {
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	select {
	case <-done:
		return true
	case <-time.After(patience):
		return false
	}
}
