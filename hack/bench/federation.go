package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"federation/apiserver/apis/federation/v1beta1"
)

// grace is the federation's grace period here: short, for only what comes after it is measured; and longer than hungFor.
const grace = 15 * time.Second

// federation is the federation under measurement: one process, or the apiserver and the controllers apart.
type federation struct {
	bin, root            string
	extra                []string // flags of the controllers
	port, dns, metrics   int
	serve                *process // all in one
	apiserver, controls  *process // or apart
	kube                 kubernetes.Interface
	dynamic              dynamic.Interface
	lastReady, lastStart time.Time
}

func newFederation(bin, root string, extra []string) (*federation, error) {
	f := &federation{bin: bin, root: root, extra: extra}
	for _, port := range []*int{&f.port, &f.dns, &f.metrics} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // when all three are chosen, so that they differ
		*port = l.Addr().(*net.TCPAddr).Port
	}
	return f, nil
}

func (f *federation) dir() string        { return filepath.Join(f.root, "federation") }
func (f *federation) kubeconfig() string { return filepath.Join(f.dir(), "admin.kubeconfig") }
func (f *federation) log() string        { return filepath.Join(f.root, "logs", "federation.log") }

func (f *federation) serverFlags() []string {
	return []string{"--data-dir=" + f.dir(), "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", f.port)}
}

func (f *federation) controllerFlags() []string {
	return append([]string{"--name=fed", "--dns-zone=example.test", fmt.Sprintf("--dns-bind-address=127.0.0.1:%d", f.dns),
		"--cluster-grace-period=" + grace.String()}, f.extra...)
}

// startAll starts all in one process and returns when its API is ready.
func (f *federation) startAll(ctx context.Context) (err error) {
	f.lastStart = time.Now()
	f.serve, err = start(f.log(), filepath.Join(f.bin, "federation"), append(append([]string{"serve"}, f.serverFlags()...), f.controllerFlags()...)...)
	if err != nil {
		return err
	}
	return f.ready(ctx, f.serve)
}

// startAPI starts the apiserver alone.
func (f *federation) startAPI(ctx context.Context) (err error) {
	f.lastStart = time.Now()
	f.apiserver, err = start(f.log(), filepath.Join(f.bin, "federation"), append([]string{"apiserver"}, f.serverFlags()...)...)
	if err != nil {
		return err
	}
	return f.ready(ctx, f.apiserver)
}

// startControllers starts the controllers alone. They have no more to get ready than their start.
func (f *federation) startControllers() (err error) {
	f.lastStart = time.Now()
	args := append([]string{"controllers", "--kubeconfig=" + filepath.Join(f.dir(), "controllers.kubeconfig"),
		fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", f.metrics)}, f.controllerFlags()...)
	f.controls, err = start(f.log(), filepath.Join(f.bin, "federation"), args...)
	return err
}

func (f *federation) ready(ctx context.Context, p *process) error {
	if err := p.ready(ctx, func() bool {
		config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig())
		if err != nil {
			return false
		}
		config.QPS = -1
		if f.kube, err = kubernetes.NewForConfig(config); err != nil {
			return false
		}
		if f.dynamic, err = dynamic.NewForConfig(config); err != nil {
			return false
		}
		look, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return f.kube.Discovery().RESTClient().Get().AbsPath("/readyz").Do(look).Error() == nil
	}); err != nil {
		return err
	}
	f.lastReady = time.Now()
	return nil
}

func (f *federation) stop() {
	f.controls.stop()
	f.serve.stop()
	f.apiserver.stop()
	f.controls, f.serve, f.apiserver = nil, nil, nil
}

// processes are those that run.
func (f *federation) processes() (out []*process) {
	for _, p := range []*process{f.serve, f.apiserver, f.controls} {
		if p != nil {
			out = append(out, p)
		}
	}
	return out
}

// join joins a member.
func (f *federation) join(ctx context.Context, name, kubeconfig string, flags ...string) error {
	args := append([]string{"join", name, "--member-kubeconfig", kubeconfig, "--kubeconfig", f.kubeconfig()}, flags...)
	cmd := exec.CommandContext(ctx, filepath.Join(f.bin, "kubectl-federation"), args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("join %s: %w\n%s", name, err, out)
	}
	return nil
}

// condition returns a condition of a Cluster, or nil.
func (f *federation) condition(ctx context.Context, cluster string, kind v1beta1.ClusterConditionType) map[string]any {
	u, err := f.dynamic.Resource(v1beta1.ClustersResource).Get(ctx, cluster, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, item := range list {
		if c, _ := item.(map[string]any); c["type"] == string(kind) {
			return c
		}
	}
	return nil
}

// waitClusters waits until all clusters are ready. One that was failed over gets its objects back in stages, for minutes:
// nothing else can be measured then.
func (f *federation) waitClusters(ctx context.Context, names []string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for _, name := range names {
		if err := until(ctx, func() bool { return f.condition(ctx, name, v1beta1.ClusterReady)["status"] == "True" }); err != nil {
			return fmt.Errorf("cluster %s does not get ready: %w", name, err)
		}
		if c := f.condition(ctx, name, v1beta1.ClusterFailedOver); c["status"] == "True" {
			return fmt.Errorf("cluster %s was failed over, which was not to be measured: %v", name, c["message"])
		}
	}
	return nil
}

// memberPid is the process of a member that local started.
func memberPid(root, name string) (pid int, err error) {
	b, err := os.ReadFile(filepath.Join(root, "members", name, "pid"))
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscan(strings.TrimSpace(string(b)), &pid)
	return pid, err
}
