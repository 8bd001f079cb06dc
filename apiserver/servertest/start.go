package servertest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"federation/apiserver"
)

// Running is a server with clients of its administrator.
type Running struct {
	Server  *apiserver.Server
	Admin   *restclient.Config
	Kube    kubernetes.Interface
	Dynamic dynamic.Interface
	// Stop ends the server, and returns why it ended otherwise.
	Stop func() error
}

// Options are those of a server that keeps its data in dir and listens on a free port.
func Options(dir string) *apiserver.Options {
	o := apiserver.NewOptions()
	o.DataDir, o.SecurePort = dir, 0
	return o
}

// Build makes a server without running it.
func Build(o *apiserver.Options) (*apiserver.Server, error) {
	c, err := o.Complete()
	if err != nil {
		return nil, err
	}
	return c.New(context.Background())
}

// Start runs a server and returns when it is ready.
func Start(o *apiserver.Options) (*Running, error) {
	server, err := Build(o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- server.Run(ctx, func() { close(ready) }) }()
	r := &Running{Server: server, Stop: func() error { cancel(); return <-ended }}
	select {
	case <-ready:
	case err := <-ended:
		cancel()
		return nil, fmt.Errorf("the server ended before it was ready: %w", err)
	case <-time.After(time.Minute):
		return nil, fmt.Errorf("not ready within a minute: %w", r.Stop())
	}
	if err := r.connect(); err != nil {
		return nil, fmt.Errorf("%w: %w", err, r.Stop())
	}
	return r, nil
}

func (r *Running) connect() (err error) {
	if r.Admin, err = clientcmd.BuildConfigFromFlags("", r.Server.KubeconfigPath()); err != nil {
		return err
	}
	r.Admin.QPS = -1
	if r.Kube, err = kubernetes.NewForConfig(r.Admin); err != nil {
		return err
	}
	r.Dynamic, err = dynamic.NewForConfig(r.Admin)
	return err
}

// Quiet has the server of a test log fatal errors only.
func Quiet() {
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	if err := flags.Parse([]string{"-logtostderr=false", "-stderrthreshold=FATAL"}); err != nil {
		panic(err)
	}
	klog.SetOutput(nowhere{})
}

type nowhere struct{}

// Write implements io.Writer.
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }

// Main is the TestMain of a package that tests a controller: it runs the tests beside a server. with starts what is tested; ctx ends after
// the tests, before the server does.
func Main(m *testing.M, with func(ctx context.Context, r *Running) error) {
	Quiet()
	code, err := runBeside(m, with)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runBeside(m *testing.M, with func(context.Context, *Running) error) (code int, err error) {
	dir, err := os.MkdirTemp("", "federation")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // nobody reads it any more
	r, err := Start(Options(dir))
	if err != nil {
		return 1, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := with(ctx, r); err != nil {
		return 1, fmt.Errorf("%w: %w", err, r.Stop())
	}
	code = m.Run()
	cancel()
	return code, r.Stop()
}
