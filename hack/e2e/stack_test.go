// Package e2e tests the whole: a real federation over three real member clusters, with real faults.
// The stack is the one that `make up` starts, in a folder of its own beside it.
package e2e

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// stack is what the tests run on.
type stack struct {
	root, dir string
	env       map[string]string
	fed       cluster
	members   map[string]cluster
}

// cluster is one API, the federation's or a member's.
type cluster struct {
	config *rest.Config
	client kubernetes.Interface
	dyn    dynamic.Interface
}

var s *stack

func TestMain(m *testing.M) {
	if runsAside() {
		return
	}
	root, err := filepath.Abs("../..")
	if err == nil {
		// E2E_NAME lets two runs go side by side.
		s = &stack{root: root, dir: filepath.Join(root, "_output", cmp.Or(os.Getenv("E2E_NAME"), "e2e"))}
		if err = s.up(); err == nil {
			err = s.connect()
		}
	}
	code := 1
	if err == nil {
		code = m.Run()
		if pullMode {
			err = s.neverConnected()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	if s != nil && os.Getenv("E2E_KEEP") == "" { // set E2E_KEEP to look at what a test left
		if err := s.local("down"); err != nil {
			fmt.Fprintln(os.Stderr, "e2e: down:", err)
			code = 1
		}
	}
	os.Exit(code)
}

func (s *stack) local(args ...string) error {
	cmd := exec.Command(filepath.Join(s.root, "_output", "bin", "local"), append(args, "--root", s.dir)...)
	cmd.Dir = s.root
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}

// up starts what does not run. flags are flags for the federation, beside those that all tests need.
func (s *stack) up(flags ...string) error {
	args := []string{"up", "--clusters", "3", "--nodes", "3"}
	if pullMode {
		args = append(args, "--pull")
	}
	// The default of half a minute of grace would make each test of failover that much longer, a minute until pods count as unschedulable that of quotas.
	for _, flag := range append([]string{"--cluster-grace-period=10s", "--unschedulable-after=10s", "--clusterset-ip-range=10.200.0.0/16", "--object-metrics"}, flags...) {
		args = append(args, "--federation-flag="+flag)
	}
	return s.local(args...)
}

func (s *stack) connect() error {
	f, err := os.Open(filepath.Join(s.dir, "env"))
	if err != nil {
		return err
	}
	defer f.Close()
	s.env, s.members = map[string]string{}, map[string]cluster{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), "="); ok {
			s.env[key] = strings.Trim(value, `"'`)
		}
	}
	if s.fed, err = connect(s.env["FEDERATION_KUBECONFIG"]); err != nil {
		return err
	}
	for _, name := range strings.Fields(s.env["MEMBERS"]) {
		if s.members[name], err = connect(filepath.Join(s.dir, "members", name, "kubeconfig")); err != nil {
			return err
		}
	}
	return nil
}

func connect(kubeconfig string) (c cluster, err error) {
	if c.config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return c, err
	}
	c.config.QPS = -1
	if c.client, err = kubernetes.NewForConfig(c.config); err != nil {
		return c, err
	}
	c.dyn, err = dynamic.NewForConfig(c.config)
	return c, err
}

// signal sends a signal to the process whose id a file holds.
func (s *stack) signal(t *testing.T, sig syscall.Signal, pidFile ...string) {
	t.Helper()
	pid := s.pid(t, pidFile...)
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatalf("signal %v to %v: %v", sig, pidFile, err)
	}
	for sig == syscall.SIGKILL { // what is killed takes a moment to end, and would be found to run
		if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); len(b) == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// pid is the process id that a file holds.
func (s *stack) pid(t *testing.T, file ...string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{s.dir}, file...)...))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid < 2 {
		t.Fatalf("pid %q", text)
	}
	return pid
}

// stop freezes a member until the returned function, or the test's end, lets it go on.
func (s *stack) stop(t *testing.T, member string) (resume func()) {
	t.Helper()
	s.signal(t, syscall.SIGSTOP, "members", member, "pid")
	done := false
	resume = func() {
		if !done {
			done = true
			s.signal(t, syscall.SIGCONT, "members", member, "pid")
		}
	}
	t.Cleanup(resume)
	return resume
}

// patience is how many times its limit a test waits: limits are what a machine with nothing else to do keeps with ease, and
// here three tests with clusters run at once, on few cores.
const patience = 3

// atMost fails the test if something took too long, where times are judged: by E2E_JUDGE_TIMES, on a machine with nothing else to do.
func atMost(t *testing.T, what string, took, limit time.Duration) {
	t.Helper()
	if t.Logf("%s: %s", what, took.Round(time.Millisecond)); took > limit && os.Getenv("E2E_JUDGE_TIMES") != "" {
		t.Errorf("%s: %s, want at most %s", what, took, limit)
	}
}

// eventually waits until check returns "", and returns how long that took. It fails the test with what
// check said last. The limit is there to end the test, not to judge speed.
func eventually(t *testing.T, limit time.Duration, check func() string) time.Duration {
	t.Helper()
	started := time.Now()
	for {
		last := check()
		if last == "" {
			return time.Since(started)
		}
		if time.Since(started) > patience*limit {
			t.Fatalf("not within %s: %s", patience*limit, last)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// kubectl runs kubectl against the federation and returns what it printed.
func (s *stack) kubectl(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience*time.Minute)
	defer cancel()
	return s.kubectlIn(ctx, stdin, args...)
}

func (s *stack) kubectlIn(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "kubectl", args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.env["FEDERATION_KUBECONFIG"], "PATH="+filepath.Join(s.root, "_output", "bin")+":"+os.Getenv("PATH"))
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// lookup asks the federation's DNS server.
func (s *stack) lookup(t *testing.T, name string, kind uint16) (rcode string, answers []string) {
	t.Helper()
	return ask(s.env["DNS_ADDRESS"], name, kind)
}

// ask asks a DNS server. Without an answer, rcode is the error.
func ask(server, name string, kind uint16) (rcode string, answers []string) {
	m := new(dns.Msg)
	m.SetQuestion(dns.Fqdn(name), kind)
	in, _, err := (&dns.Client{Timeout: time.Second}).Exchange(m, server)
	if err != nil {
		return err.Error(), nil
	}
	for _, rr := range in.Answer {
		switch r := rr.(type) {
		case *dns.A:
			answers = append(answers, r.A.String())
		case *dns.CNAME:
			answers = append(answers, r.Target)
		}
	}
	return dns.RcodeToString[in.Rcode], answers
}
