package main

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"federation/hack/procusage"
)

// proxy is a program in one of its modes.
type proxy struct {
	name    string
	program string
	backend string // of iptables: nft or legacy
	args    []string
}

func (p proxy) ours() bool { return p.program == "federation-nodeagent" }

// inNamespace keeps kube-proxy from writing what only the machine's own network namespace has.
var inNamespace = []string{"--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0"}

var proxies = []proxy{
	{"kube-proxy-iptables-nft", "kube-proxy", "nft", append(inNamespace[:3:3], "--proxy-mode=iptables")},
	{"kube-proxy-iptables-legacy", "kube-proxy", "legacy", append(inNamespace[:3:3], "--proxy-mode=iptables")},
	{"kube-proxy-nftables", "kube-proxy", "", append(inNamespace[:3:3], "--proxy-mode=nftables")},
	{"iptables-nft", "federation-nodeagent", "", []string{"--proxy-mode=iptables", "--iptables-backend=nft"}},
	{"iptables-legacy", "federation-nodeagent", "", []string{"--proxy-mode=iptables", "--iptables-backend=legacy"}},
	{"nftables", "federation-nodeagent", "", []string{"--proxy-mode=nftables"}},
}

func names() (out []string) {
	for _, p := range proxies {
		out = append(out, p.name)
	}
	return out
}

const metricsAddress = "127.0.0.1:10249"

// process is a proxy that runs.
type process struct {
	cmd    *exec.Cmd
	begun  time.Time
	exited chan struct{}
	site   *site
}

func (b *bench) start(s *site, c *cluster, p proxy) (*process, error) {
	path, err := b.commands(p.backend)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(b.dir, p.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(b.bin, p.program), append([]string{"--kubeconfig=" + c.kubeconfig, "--hostname-override=" + c.node,
		"--cluster-cidr=" + podAddrs.String(), "--metrics-bind-address=" + metricsAddress}, p.args...)...)
	cmd.Env = append(os.Environ(), "PATH="+path)
	cmd.Stdout, cmd.Stderr = log, log
	out := &process{cmd: cmd, begun: time.Now(), exited: make(chan struct{}), site: s}
	if err := s.Do(cmd.Start); err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait() // how it ended stands in its log
		close(out.exited)
	}()
	return out, nil
}

// commands makes the commands iptables… those of a backend, and returns the PATH in which they are so.
func (b *bench) commands(backend string) (string, error) {
	path := os.Getenv("PATH") + ":/usr/sbin"
	if backend == "" {
		return path, nil
	}
	dir, err := filepath.Abs(filepath.Join(b.dir, backend))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for _, command := range []string{"iptables", "ip6tables"} {
		for _, what := range []string{"", "-save", "-restore"} {
			program := "/usr/sbin/" + command + "-" + backend + what
			if err := os.Symlink(program, filepath.Join(dir, command+what)); err != nil && !errors.Is(err, os.ErrExist) {
				return "", err
			}
		}
	}
	return dir + ":" + path, nil
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(10 * time.Second): // it waits for a command that does not end
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

// errEnded is that of a proxy that ended by itself.
var errEnded = errors.New("it ended; see its log")

func (p *process) alive() error {
	select {
	case <-p.exited:
		return errEnded
	default:
		return nil
	}
}

func (p *process) usage() procusage.Usage { return procusage.Of(p.cmd.Process.Pid) }

// cpu is what the process and the children that it waited for have used so far.
func (p *process) cpu() time.Duration {
	u := p.usage()
	return u.CPU + u.Waited
}

// metrics are a proxy's numbers whose names begin so, without those with other labels than le.
func (p *process) metrics(prefix string) (map[string]float64, error) {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true,
		DialContext: func(_ context.Context, _, _ string) (c net.Conn, err error) {
			err = p.site.Do(func() error { c, err = net.DialTimeout("tcp", metricsAddress, time.Second); return err })
			return c, err
		}}}
	answer, err := client.Get("http://" + metricsAddress + "/metrics")
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	out := map[string]float64{}
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if l := lines.Text(); strings.HasPrefix(l, prefix) {
			at := strings.LastIndexByte(l, ' ')
			if v, err := strconv.ParseFloat(l[at+1:], 64); err == nil {
				out[l[:at]] = v
			}
		}
	}
	return out, nil
}

// synced reports whether the proxy says that it has written its rules since it started.
func (p *process) synced() error {
	const name = "kubeproxy_sync_proxy_rules_last_timestamp_seconds"
	m, err := p.metrics(name)
	if err != nil {
		return err
	}
	for _, v := range m { // kube-proxy has one for each family
		if v > 0 {
			return nil
		}
	}
	return errors.New("it has not written its rules")
}
