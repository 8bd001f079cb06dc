package consoletest

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const bin = "../../_output/bin/" // of make build

var firefox = flag.Bool("firefox", false, "have the pages shown by Firefox ESR, not by Chromium; what only Chromium can say is skipped")

// The browsers, as Debian names them. Where one is missing its tests fail.
const (
	chromiumProgram = "chromium"
	firefoxProgram  = "firefox-esr"
)

func TestMain(m *testing.M) {
	flag.Parse()
	program, tools := chromiumProgram, "tests"
	if *firefox {
		program, tools = firefoxProgram, "firefox"
	}
	if _, err := exec.LookPath(program); err != nil {
		fmt.Fprintf(os.Stderr, "the tests of the console need %s: hack/install-tools.sh %s installs it\n", program, tools)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// server is a federation's apiserver, a process of its own.
type server struct {
	dir    string
	admin  *rest.Config
	kube   kubernetes.Interface
	fleet  *fleet
	config string // the administrator's kubeconfig
	end    func() // ends it, before the test's end
	// address is that of the last console.
	address string
}

// startServer starts an apiserver, which the test's end ends.
func startServer(t *testing.T, flags ...string) *server {
	t.Helper()
	s := &server{dir: t.TempDir()}
	s.start(t, append([]string{"--secure-port", "0"}, flags...)...)
	return s
}

// start starts the server, on what it had before if it was ended.
func (s *server) start(t *testing.T, flags ...string) {
	t.Helper()
	s.config = filepath.Join(s.dir, "admin.kubeconfig")
	_, s.end = process(t, "ready;", bin+"federation", append([]string{"apiserver", "--data-dir", s.dir}, flags...)...)
	s.admin = s.configOf(t, s.config)
	var err error
	s.kube, err = kubernetes.NewForConfig(s.admin)
	must(t, err)
	s.fleet = &fleet{kube: s.kube}
	s.fleet.admin, err = dynamic.NewForConfig(s.admin)
	must(t, err)
	s.fleet.controllers, err = dynamic.NewForConfig(s.configOf(t, filepath.Join(s.dir, "controllers.kubeconfig")))
	must(t, err)
}

func (s *server) configOf(t *testing.T, path string) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", path)
	must(t, err)
	config.QPS = -1
	return config
}

// console starts `kubectl federation console` and returns the address that it prints.
func (s *server) console(t *testing.T, flags ...string) string {
	t.Helper()
	line, _ := process(t, "console: ", bin+"kubectl-federation", append([]string{"console", "--no-browser", "--kubeconfig", s.config}, flags...)...)
	s.address = strings.TrimSpace(strings.TrimPrefix(line, "console: "))
	return s.address
}

// process starts a program, waits for a line that contains until, and returns it. The test's end ends the program, if end has not.
func process(t *testing.T, until, name string, args ...string) (line string, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	read, write, err := os.Pipe()
	must(t, err)
	cmd.Stdout, cmd.Stderr = write, write
	must(t, cmd.Start())
	write.Close()
	found, ended := make(chan string, 1), make(chan error, 1)
	var last []string
	go func() {
		lines := bufio.NewScanner(read)
		for lines.Scan() {
			if last = append(last, lines.Text()); len(last) > 20 {
				last = last[1:]
			}
			if strings.Contains(lines.Text(), until) {
				select {
				case found <- lines.Text():
				default:
				}
			}
		}
		ended <- errors.Join(lines.Err(), cmd.Wait())
	}()
	end = sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(end)
	select {
	case line = <-found:
		return line, end
	case err := <-ended:
		ended <- nil
		t.Fatalf("%s %s ended: %v\n%s", name, strings.Join(args, " "), err, strings.Join(last, "\n"))
	case <-time.After(time.Minute):
		t.Fatalf("%s %s did not print %q within a minute", name, strings.Join(args, " "), until)
	}
	return "", end
}
