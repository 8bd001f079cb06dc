package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// How much the limits are measured with.
const (
	manyHosts, manyClusters = 1000, 20
	slowClients             = 10_000
	besideRate              = 1000 // requests a second of the load beside
)

// hosts measures a load balancer of many hosts, and changes under load.
func (b *bench) hosts(ctx context.Context, cert *certificate) (string, error) {
	if err := b.federation.addHosts(ctx); err != nil {
		return "", err
	}
	child, err := start(first(b.command()), b.dir)
	if err != nil {
		return "", err
	}
	defer child.end()
	g := newGenerator(loads[0], cert.public, b.connections)
	defer g.close()
	if err := g.waitReady(); err != nil {
		return "", child.fault(err)
	}
	calm := g.run(b.length, besideRate)
	atRest := child.usage()
	changed := make(chan *result)
	stop := make(chan struct{})
	go func() { changed <- g.runUntil(stop, besideRate) }()
	began := time.Now()
	ingress, offer, err := b.federation.change(ctx, b.changes)
	took := time.Since(began)
	close(stop)
	during := <-changed
	if err != nil {
		return "", child.fault(err)
	}
	after := child.usage()
	var w strings.Builder
	fmt.Fprintf(&w, "\n### Many hosts\n\nfederation-lb with %d hosts in %d clusters each, and %d requests a second beside:\n\n| | |\n|---|---|\n", manyHosts, manyClusters, besideRate)
	fmt.Fprintf(&w, "| memory | %d MB, %d MB at the highest; %d MB after the changes, %d MB at the highest |\n", atRest.RSS>>20, atRest.Peak>>20, after.RSS>>20, after.Peak>>20)
	fmt.Fprintf(&w, "| %d changes, one after the other | %v, which took the load balancer %.1f ms of CPU each, requests and checks included; from the API server's answer until an Ingress is served p50 %v, p99 %v, until what clusters have is %v, %v |\n",
		b.changes, took.Round(10*time.Millisecond), float64((after.CPU-atRest.CPU).Microseconds())/1000/float64(b.changes), rounded(ingress.quantile(0.5)), rounded(ingress.quantile(0.99)), rounded(offer.quantile(0.5)), rounded(offer.quantile(0.99)))
	fmt.Fprintf(&w, "| requests beside the changes | %d, %d failed, p99 %v; %v before |\n", during.requests, during.failed, rounded(during.quantile(0.99)), rounded(calm.quantile(0.99)))
	return w.String(), nil
}

// first is a command whose process goes before others where cores are short: in life, the API server, clients and clusters are other machines.
func first(c *exec.Cmd) *exec.Cmd {
	return exec.Command("nice", append([]string{"-n", "-10", c.Path}, c.Args[1:]...)...)
}

// addHosts adds many hosts, of which all clusters have the backends.
func (f *federation) addHosts(ctx context.Context) error {
	for n := range manyHosts {
		if n == 0 {
			if err := f.report(ctx, n, allClusters()...); err != nil {
				return err
			}
		} else if err := f.addHost(ctx, n, allClusters()...); err != nil {
			return err
		}
	}
	return nil
}

// change makes many changes, one after the other, each of another host, and returns how long it took until they were served: those of Ingresses, and of what
// clusters have of a Service. In the end all is as before but for a path of each Ingress.
func (f *federation) change(ctx context.Context, changes int) (ingress, offer *result, err error) {
	v, err := newVisitor()
	if err != nil {
		return nil, nil, err
	}
	defer v.Close()
	ingress, offer = &result{}, &result{}
	for n := range changes / 4 {
		at := n % manyHosts
		for i := range 2 {
			generation := 2*n + i + 2
			took, err := v.await(ctx, func() error { return f.write(ctx, at, generation) }, hostName(at), generationPath(generation), func(status int, _ string) bool { return status == 200 }, 1)
			if err != nil {
				return nil, nil, fmt.Errorf("the Ingress %s: %w", serviceName(at), err)
			}
			ingress.times = append(ingress.times, took)
		}
		cluster := n % manyClusters
		took, err := v.await(ctx, func() error { return f.report(ctx, at, cluster) }, hostName(at), "/some", func(_ int, by string) bool { return by == clusterName(cluster) }, sameInARow)
		if err != nil {
			return nil, nil, fmt.Errorf("the Service %s: %w", serviceName(at), err)
		}
		offer.times = append(offer.times, took)
		if err := f.report(ctx, at, allClusters()...); err != nil {
			return nil, nil, err
		}
	}
	return ingress, offer, nil
}

// sameInARow answers of one cluster are no chance.
const sameInARow = 4

// write writes another generation of an Ingress.
func (f *federation) write(ctx context.Context, n, generation int) error {
	_, err := f.admin.NetworkingV1().Ingresses(namespace).Update(ctx, ingressOf(n, generation), metav1.UpdateOptions{})
	return err
}

// visitor sends requests over one connection.
type visitor struct{ *connection }

func newVisitor() (*visitor, error) {
	c, err := net.DialTimeout("tcp", plainAddress, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return &visitor{newConnection(c)}, nil
}

// await makes a change, and then sends requests until their answers show it, so many in a row. It returns when the first of these was, counted from the end of the change.
func (v *visitor) await(ctx context.Context, change func() error, host, path string, shows func(status int, cluster string) bool, row int) (took time.Duration, err error) {
	if err := change(); err != nil {
		return 0, err
	}
	began := time.Now()
	for in := 0; in < row; {
		status, cluster, err := v.get(host, path)
		if err != nil {
			return 0, err
		}
		switch {
		case !shows(status, cluster):
			in = 0
		case in == 0:
			took = time.Since(began)
			fallthrough
		default:
			in++
		}
		if time.Since(began) > 10*time.Second || ctx.Err() != nil {
			return 0, errors.New("the change is not served within 10 s")
		}
	}
	return took, nil
}

// slowClients measures what many clients cost that send a head byte by byte, and what it does to others.
func (b *bench) slowClients(_ context.Context, cert *certificate) (string, error) {
	child, err := start(b.command(), b.dir)
	if err != nil {
		return "", err
	}
	defer child.end()
	g := newGenerator(loads[0], cert.public, b.connections)
	defer g.close()
	if err := g.waitReady(); err != nil {
		return "", child.fault(err)
	}
	before := g.run(2*b.length, besideRate)
	atRest := child.usage().RSS
	slow, err := newSlowClients(slowClients)
	if err != nil {
		return "", err
	}
	defer slow.close()
	beside := g.run(4*b.length, besideRate)
	held := child.usage().RSS
	return fmt.Sprintf("\n### Slow clients\n\n%d clients that send a byte of a head each second: %d MB, %d MB before, %.1f KB each. Requests beside: %d, %d failed, p99 %v, %v before.\n",
		slowClients, held>>20, atRest>>20, float64(held-atRest)/1024/slowClients, beside.requests, beside.failed, rounded(beside.quantile(0.99)), rounded(before.quantile(0.99))), nil
}

func rounded(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// crowd are clients that send a byte of a head each second, over connections that they open again when they are closed.
type crowd struct {
	stop chan struct{}
	done chan struct{}
}

func newSlowClients(number int) (*crowd, error) {
	conns := make([]net.Conn, number)
	dial := func(n int) (err error) {
		conns[n], err = net.DialTimeout("tcp", plainAddress, 5*time.Second)
		return err
	}
	for n := range conns {
		if err := dial(n); err != nil {
			return nil, err
		}
	}
	c := &crowd{make(chan struct{}), make(chan struct{})}
	go func() {
		defer close(c.done)
		head := []byte("GET /" + strings.Repeat("a", 100))
		for at := 0; ; at++ {
			for n := range conns {
				if _, err := conns[n].Write(head[at%len(head):][:1]); err != nil {
					_ = conns[n].Close() // it has been closed
					_ = dial(n)          // the next write says if not
				}
			}
			select {
			case <-c.stop:
				for n := range conns {
					_ = conns[n].Close() // the run is over
				}
				return
			case <-time.After(time.Second):
			}
		}
	}()
	return c, nil
}

func (c *crowd) close() {
	close(c.stop)
	<-c.done
}
