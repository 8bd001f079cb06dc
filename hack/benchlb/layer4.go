package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// streamPort is that of a Service of the load balancers' class, and streamAddress where all proxies take connections to it.
const (
	streamPort    = 18090
	streamAddress = "127.0.0.1:18090"
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
	use  func(stop <-chan struct{}, done *atomic.Int64) error
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

func dialStream() (net.Conn, error) {
	c, err := net.DialTimeout("tcp", streamAddress, 5*time.Second)
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

func connectEach(stop <-chan struct{}, done *atomic.Int64) error {
	buffer := make([]byte, answer)
	for !ended(stop) {
		c, err := dialStream()
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

func askKept(stop <-chan struct{}, done *atomic.Int64) error {
	c, err := dialStream()
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

func readBulk(stop <-chan struct{}, done *atomic.Int64) error {
	c, err := dialStream()
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

// serveStreams is the backend's side, of one cluster.
func serveStreams() error {
	l, err := net.Listen("tcp", net.JoinHostPort(clusterAddress(0), fmt.Sprint(streamPort)))
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
	return f.reportOf(ctx, streamService, 0)
}

func (b *bench) streamProxies() []proxyUnderTest {
	backend, cores := net.JoinHostPort(clusterAddress(0), fmt.Sprint(streamPort)), runtime.NumCPU()
	haproxy := func(name, option string) proxyUnderTest {
		return proxyUnderTest{name, func() *exec.Cmd {
			return exec.Command("haproxy", "-db", "-f", b.write("haproxy-tcp.cfg", fmt.Sprintf(haproxyStreamConfig, cores, option, streamAddress, backend)))
		}}
	}
	return []proxyUnderTest{
		{"federation-lb", b.command}, haproxy("HAProxy", ""), haproxy("HAProxy, splice-auto", "option splice-auto"),
		{"nginx", func() *exec.Cmd {
			return exec.Command("nginx", "-c", b.write("nginx-stream.conf", fmt.Sprintf(nginxStreamConfig, cores, b.dir, streamAddress, backend)))
		}},
	}
}

// streams measures all proxies that pass connections on as they are.
func (b *bench) streams(context.Context, *certificate) (string, error) {
	all := map[string]*figures{}
	for range b.rounds {
		for _, p := range b.streamProxies() {
			if all[p.name] == nil {
				all[p.name] = &figures{cpu: make([][]time.Duration, len(streamLoads)), rate: make([][]float64, len(streamLoads))}
			}
			if err := b.measureStreams(p, all[p.name]); err != nil {
				return "", fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	var w strings.Builder
	fmt.Fprintf(&w, "\n### Layer 4: %d connections at once, %d rounds of %s\n\n| |", b.connections, b.rounds, b.length)
	for _, l := range streamLoads {
		fmt.Fprintf(&w, " %s: CPU per %s | %ss a second |", l.name, l.unit, l.unit)
	}
	fmt.Fprintf(&w, "\n|---|%s\n", strings.Repeat("---|", 2*len(streamLoads)))
	for _, p := range b.streamProxies() {
		fmt.Fprintf(&w, "| %s |", p.name)
		for n := range streamLoads {
			fmt.Fprintf(&w, " %s | %.*f |", middle(all[p.name].cpu[n]).Round(100*time.Nanosecond), n/2, middle(all[p.name].rate[n]))
		}
		w.WriteString("\n")
	}
	return w.String(), nil
}

// measureStreams starts a proxy, puts each load on it, and ends it.
func (b *bench) measureStreams(p proxyUnderTest, f *figures) error {
	proxy, err := start(p.command(), b.dir)
	if err != nil {
		return err
	}
	defer proxy.end()
	if err := waitStream(); err != nil {
		return proxy.fault(err)
	}
	for n, l := range streamLoads {
		stop, failed := make(chan struct{}), make(chan error, b.connections)
		var done atomic.Int64
		var clients sync.WaitGroup
		for range b.connections {
			clients.Go(func() {
				if err := l.use(stop, &done); err != nil {
					failed <- err
				}
			})
		}
		time.Sleep(b.length / 4) // warm
		before, from, began := proxy.usage(), done.Load(), time.Now()
		time.Sleep(b.length)
		used, units, took := proxy.usage().CPU-before.CPU, float64(done.Load()-from)/l.each, time.Since(began)
		close(stop)
		clients.Wait()
		if close(failed); len(failed) > 0 {
			return proxy.fault(fmt.Errorf("%s: %w", l.name, <-failed))
		}
		f.cpu[n] = append(f.cpu[n], time.Duration(float64(used)/units))
		f.rate[n] = append(f.rate[n], units/took.Seconds())
	}
	return nil
}

// waitStream waits until a question is answered.
func waitStream() (err error) {
	for range 500 {
		var c net.Conn
		if c, err = dialStream(); err == nil {
			err = ask(c, make([]byte, answer))
			_ = c.Close() // a trial
			if err == nil {
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
