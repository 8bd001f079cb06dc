package servertest

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"federation/apiserver"
)

// running is a server with clients.
type running struct {
	server  *apiserver.Server
	admin   *restclient.Config
	kube    kubernetes.Interface
	dynamic dynamic.Interface
	dataDir string
	stop    func() error
}

// shared is the server of all tests that need no other.
var shared *running

func TestMain(m *testing.M) {
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	flags.Parse([]string{"-logtostderr=false", "-stderrthreshold=FATAL"})
	klog.SetOutput(nowhere{})
	os.Exit(run(m))
}

type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "apiserver")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	o := options(dir)
	o.ReviewFailover, o.Place, o.BeforeReady, o.Clusters = review, place, lookUnready, shownClusters
	if shared, err = start(o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop:", err)
		return 1
	}
	return code
}

func options(dir string) *apiserver.Options {
	o := apiserver.NewOptions()
	o.DataDir, o.SecurePort = dir, 0
	return o
}

// build makes a server without running it.
func build(o *apiserver.Options) (*apiserver.Server, error) {
	c, err := o.Complete()
	if err != nil {
		return nil, err
	}
	return c.New(context.Background())
}

// start runs a server and returns when it is ready.
func start(o *apiserver.Options) (*running, error) {
	server, err := build(o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- server.Run(ctx, func() { close(ready) }) }()
	r := &running{server: server, dataDir: o.DataDir, stop: func() error { cancel(); return <-ended }}
	select {
	case <-ready:
		return r, r.connect()
	case err := <-ended:
		cancel()
		return nil, fmt.Errorf("the server ended before it was ready: %w", err)
	case <-time.After(time.Minute):
		return nil, fmt.Errorf("not ready within a minute: %w", r.stop())
	}
}

func (r *running) connect() (err error) {
	if r.admin, err = clientcmd.BuildConfigFromFlags("", r.server.KubeconfigPath()); err != nil {
		return err
	}
	r.admin.QPS = -1
	if r.kube, err = kubernetes.NewForConfig(r.admin); err != nil {
		return err
	}
	r.dynamic, err = dynamic.NewForConfig(r.admin)
	return err
}

// port returns where the server listens.
func (r *running) port(t *testing.T) int {
	t.Helper()
	u, err := url.Parse(r.admin.Host)
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
