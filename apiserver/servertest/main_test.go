package servertest

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"

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
	Quiet()
	os.Exit(run(m))
}

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

func options(dir string) *apiserver.Options { return Options(dir) }

// build makes a server without running it.
func build(o *apiserver.Options) (*apiserver.Server, error) { return Build(o) }

// start runs a server and returns when it is ready.
func start(o *apiserver.Options) (*running, error) {
	r, err := Start(o)
	if err != nil {
		return nil, err
	}
	return &running{server: r.Server, admin: r.Admin, kube: r.Kube, dynamic: r.Dynamic, dataDir: o.DataDir, stop: r.Stop}, nil
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
