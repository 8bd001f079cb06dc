package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// streamPort is that of a Service of the load balancers' class.
const (
	streamPort    = 18090
	streamService = "raw"
)

// What a client sends first, and what the backend then does.
const (
	askFor   = 'a' // it answers each question
	sendBulk = 'b' // it sends until the client is gone
	question = 64  // bytes
	answer   = 1024
)

// streamLoad is one column: how a client uses its connections. use counts into done until the deadline of its connections has passed, or stop is closed.
type streamLoad struct {
	name, unit string
	// each is how much of what is counted a unit is.
	each float64
	use  func(address string, stop <-chan struct{}, done *atomic.Int64) error
}

var streamLoads = []streamLoad{
	{"a connection each", "connection", 1, connectEach},
	{"1 KB answers over kept connections", "answer", 1, askKept},
	{"bulk over kept connections", "GB", 1 << 30, readBulk},
}

func ended(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

func dialStream(address string) (net.Conn, error) {
	c, err := net.DialTimeout("tcp", net.JoinHostPort(address, fmt.Sprint(streamPort)), 5*time.Second)
	if err != nil {
		return nil, err
	}
	return c, c.SetDeadline(time.Now().Add(time.Minute))
}

// ask sends a question, and reads the answer.
func ask(c net.Conn, buffer []byte) error {
	buffer[0] = askFor
	if _, err := c.Write(buffer[:question]); err != nil {
		return err
	}
	_, err := io.ReadFull(c, buffer[:answer])
	return err
}

func connectEach(address string, stop <-chan struct{}, done *atomic.Int64) error {
	buffer := make([]byte, answer)
	for !ended(stop) {
		c, err := dialStream(address)
		if err != nil {
			return err
		}
		err = ask(c, buffer)
		_ = c.Close() // it has been used
		if err != nil {
			return err
		}
		done.Add(1)
	}
	return nil
}

func askKept(address string, stop <-chan struct{}, done *atomic.Int64) error {
	c, err := dialStream(address)
	if err != nil {
		return err
	}
	defer c.Close()
	buffer := make([]byte, answer)
	for !ended(stop) {
		if err := ask(c, buffer); err != nil {
			return err
		}
		done.Add(1)
	}
	return nil
}

func readBulk(address string, stop <-chan struct{}, done *atomic.Int64) error {
	c, err := dialStream(address)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write([]byte{sendBulk}); err != nil {
		return err
	}
	buffer := make([]byte, 256<<10)
	for !ended(stop) {
		n, err := c.Read(buffer)
		if err != nil {
			return err
		}
		done.Add(int64(n))
	}
	return nil
}

// serveStreams is the cluster's side.
func serveStreams() error {
	l, err := net.Listen("tcp", fmt.Sprint(":", streamPort))
	if err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			buffer := make([]byte, 256<<10)
			for {
				n, err := io.ReadAtLeast(c, buffer, 1)
				if err != nil {
					return // who asked is gone
				}
				for buffer[0] == sendBulk {
					if _, err := c.Write(buffer); err != nil {
						return // who asked is gone
					}
				}
				if _, err := io.ReadFull(c, buffer[n:question]); err != nil {
					return // who asked is gone
				}
				if _, err := c.Write(buffer[:answer]); err != nil {
					return // who asked is gone
				}
			}
		}()
	}
}

// addStream adds the Service of the load balancers' class, which one cluster has.
func (f *federation) addStream(ctx context.Context) error {
	if _, err := f.admin.CoreV1().Services(namespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: streamService},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new(v1beta1.LoadBalancerClassName), Selector: map[string]string{"app": streamService}, Ports: []corev1.ServicePort{{Port: streamPort}},
		},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	return f.reportItems(ctx, streamService, v1beta1.ServiceIngresses{Items: []v1beta1.ClusterServiceIngress{{Cluster: clusterName(0), Items: []corev1.LoadBalancerIngress{{IP: streamCluster}}}}})
}

// streamProxy is one row: where clients connect to, and what listens there; nothing where that is the cluster.
type streamProxy struct {
	proxyUnderTest
	address string
}

func (b *bench) streamProxies() []streamProxy {
	at, backend, cores := net.JoinHostPort(proxySide, fmt.Sprint(streamPort)), net.JoinHostPort(streamCluster, fmt.Sprint(streamPort)), runtime.NumCPU()
	row := func(name string, command func() *exec.Cmd) streamProxy {
		return streamProxy{proxyUnderTest{name, command}, proxySide}
	}
	haproxy := func(name, option string) streamProxy {
		return row(name, func() *exec.Cmd {
			return exec.Command("haproxy", "-db", "-f", b.write("haproxy-tcp.cfg", fmt.Sprintf(haproxyStreamConfig, cores, option, at, backend)))
		})
	}
	return []streamProxy{
		{proxyUnderTest{"no load balancer", nil}, directSide},
		row("federation-lb, nftables", func() *exec.Cmd { return b.command("--service-proxy-mode", "nftables") }),
		row("federation-lb, userspace", func() *exec.Cmd { return b.command() }),
		haproxy("HAProxy", ""), haproxy("HAProxy, splice-auto", "option splice-auto"),
		row("nginx", func() *exec.Cmd {
			return exec.Command("nginx", "-c", b.write("nginx-stream.conf", fmt.Sprintf(nginxStreamConfig, cores, b.dir, at, backend)))
		}),
	}
}

const streamHeading = `
### Layer 4: %d connections at once, %d rounds of %s

Clients, proxies and cluster are in network namespaces of their own. CPU is that of the whole machine, with the kernel's interrupts, less what the same takes
without a load balancer: the kernel has no process whose time could be read. In brackets the proxy's own processes.

| |`

// streams measures all proxies that pass connections on as they are.
func (b *bench) streams(context.Context, *certificate) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	cluster := exec.Command(self, "--serve-streams")
	var backend *process
	if err := within(b.lanes.cluster, func() (err error) { backend, err = start(cluster, b.dir); return err }); err != nil {
		return "", err
	}
	defer backend.end()
	whole, own := map[string]*figures{}, map[string]*figures{}
	for range b.rounds {
		for _, p := range b.streamProxies() {
			if whole[p.name] == nil {
				whole[p.name] = &figures{cpu: make([][]time.Duration, len(streamLoads)), rate: make([][]float64, len(streamLoads))}
				own[p.name] = &figures{cpu: make([][]time.Duration, len(streamLoads))}
			}
			if err := b.measureStreams(p, whole[p.name], own[p.name]); err != nil {
				return "", fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	return b.reportStreams(whole, own), nil
}

func (b *bench) reportStreams(whole, own map[string]*figures) string {
	var w strings.Builder
	fmt.Fprintf(&w, streamHeading, b.connections, b.rounds, b.length)
	for _, l := range streamLoads {
		fmt.Fprintf(&w, " %s: CPU per %s | %ss a second |", l.name, l.unit, l.unit)
	}
	fmt.Fprintf(&w, "\n|---|%s\n", strings.Repeat("---|", 2*len(streamLoads)))
	all := b.streamProxies()
	more := func(p string, n int) time.Duration {
		return middle(whole[p].cpu[n]) - middle(whole[all[0].name].cpu[n])
	}
	for i, p := range all {
		fmt.Fprintf(&w, "| %s |", p.name)
		for n := range streamLoads {
			cpu := fmt.Sprintf("(%s in all)", middle(whole[p.name].cpu[n]).Round(100*time.Nanosecond))
			if i > 0 {
				cpu = fmt.Sprintf("%s (%s)", more(p.name, n).Round(100*time.Nanosecond), middle(own[p.name].cpu[n]).Round(100*time.Nanosecond))
			}
			fmt.Fprintf(&w, " %s | %.*f |", cpu, n/2, middle(whole[p.name].rate[n]))
		}
		w.WriteString("\n")
	}
	w.WriteString("\nTo HAProxy's:")
	for _, p := range all[1:3] {
		fmt.Fprintf(&w, " %s", p.name)
		for n, l := range streamLoads {
			fmt.Fprintf(&w, ", %s %.2f", l.name, float64(more(p.name, n))/float64(more("HAProxy", n)))
		}
		w.WriteString(";")
	}
	return strings.TrimSuffix(w.String(), ";") + ".\n"
}

// measureStreams starts a proxy, puts each load on it, and ends it.
func (b *bench) measureStreams(p streamProxy, whole, own *figures) error {
	usage, fault := func() time.Duration { return 0 }, func(err error) error { return err }
	if p.command != nil {
		proxy, err := start(p.command(), b.dir)
		if err != nil {
			return err
		}
		defer proxy.end()
		usage, fault = func() time.Duration { return proxy.usage().CPU }, proxy.fault
	}
	if err := within(b.lanes.clients, func() error { return waitStream(p.address) }); err != nil {
		return fault(err)
	}
	for n := range streamLoads {
		load, err := b.startStreamLoad(n, p.address)
		if err != nil {
			return err
		}
		time.Sleep(b.length / 4) // warm
		before, machine, began := usage(), machineCPU(), time.Now()
		from, err1 := load.done()
		time.Sleep(b.length)
		used, worked, took := usage()-before, machineCPU()-machine, time.Since(began)
		done, err2 := load.done()
		if err := errors.Join(err1, err2, load.end()); err != nil {
			return fault(fmt.Errorf("%s: %w", streamLoads[n].name, err))
		}
		units := float64(done-from) / streamLoads[n].each
		own.cpu[n] = append(own.cpu[n], time.Duration(float64(used)/units))
		whole.cpu[n] = append(whole.cpu[n], time.Duration(float64(worked)/units))
		whole.rate[n] = append(whole.rate[n], units/took.Seconds())
	}
	return nil
}

// streamLoadProcess is a process that puts a load on a proxy. For each line that it reads it writes how much it has done.
type streamLoadProcess struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// startStreamLoad starts the n-th load, where clients are.
func (b *bench) startStreamLoad(n int, address string) (*streamLoadProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "--stream-load", fmt.Sprint(n), "--stream-address", address, "--connections", fmt.Sprint(b.connections))
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, within(b.lanes.clients, cmd.Start)); err != nil {
		return nil, err
	}
	return &streamLoadProcess{cmd, in, bufio.NewScanner(out)}, nil
}

func (l *streamLoadProcess) done() (n int64, err error) {
	if _, err := io.WriteString(l.in, "\n"); err != nil {
		return 0, err
	}
	if !l.out.Scan() {
		return 0, errors.New("the load has ended")
	}
	return strconv.ParseInt(l.out.Text(), 10, 64)
}

func (l *streamLoadProcess) end() error {
	_ = l.in.Close() // it ends by that
	return l.Wait()
}

// runStreamLoad is that process.
func runStreamLoad(n, connections int, address string) error {
	stop, failed := make(chan struct{}), make(chan error, connections)
	var done atomic.Int64
	var clients sync.WaitGroup
	for range connections {
		clients.Go(func() {
			if err := streamLoads[n].use(address, stop, &done); err != nil {
				failed <- err
			}
		})
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(done.Load())
	}
	close(stop)
	clients.Wait()
	if close(failed); len(failed) > 0 {
		return <-failed
	}
	return nil
}

// waitStream waits until a question is answered, and goes on to be so: a program may have begun with something else.
func waitStream(address string) (err error) {
	for range 500 {
		var c net.Conn
		if c, err = dialStream(address); err == nil {
			err = ask(c, make([]byte, answer))
			_ = c.Close() // a trial
			if err == nil {
				time.Sleep(time.Second)
				return nil
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	return errors.Join(errors.New("no question is answered"), err)
}

const haproxyStreamConfig = `
global
  maxconn 4000
  nbthread %d
defaults
  mode tcp
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  %s
listen l
  bind %s
  server s %s
`

const nginxStreamConfig = `
load_module ` + nginxStreamModule + `;
daemon off; worker_processes %d; error_log stderr; pid %s/nginx-stream.pid;
events { worker_connections 4000; }
stream {
  server { listen %s; proxy_pass %s; }
}
`

// nginxStreamModule is where Debian has it.
const nginxStreamModule = "/usr/lib/nginx/modules/ngx_stream_module.so"
