package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	namespace = "default"
	// probes are Services with one endpoint, beside those that a size counts: those of which endpoints are swapped.
	// The first is swapped again and again, the others once.
	probes       = 1 + steadyRate*steadySeconds
	maxServices  = 40000 - probes
	maxEndpoints = 1 << 16
	writers      = 16 // requests at a time
)

// Addresses of Services, and of endpoints that accept and that refuse.
var (
	serviceAddrs  = netip.MustParsePrefix("10.96.0.0/16")
	firstService  = netip.MustParseAddr("10.96.16.0")
	podAddrs      = netip.MustParsePrefix("10.180.0.0/14")
	acceptingPods = netip.MustParsePrefix("10.181.0.0/16")
	refusingPods  = netip.MustParsePrefix("10.182.0.0/16")
)

// cluster is a control plane with Services and EndpointSlices.
type cluster struct {
	process          *exec.Cmd
	kubeconfig, host string
	node             string // the name of a Node, without which kube-proxy waits for half a minute
	kube             kubernetes.Interface
	has              size
	made             int // Services
	bursts           int
	// seen tells when this program's own watch saw a slice's last change, by the slice's name.
	seen *sightings
}

func (b *bench) startCluster(ctx context.Context) (*cluster, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(filepath.Join(b.dir, "cluster"))
	if err != nil {
		return nil, err
	}
	c := &cluster{kubeconfig: filepath.Join(dir, "kubeconfig"), host: fmt.Sprintf("127.0.0.1:%d", port)}
	c.process = exec.Command(filepath.Join(b.bin, "member"), "--name=m", "--region=r", "--zone=z", "--nodes=1", "--lb-cidr=203.0.113.0/24",
		"--service-cidr="+serviceAddrs.String(), "--data-dir="+dir, fmt.Sprintf("--port=%d", port))
	if err := c.process.Start(); err != nil {
		return nil, err
	}
	if err := until(ctx, time.Minute, func() error { return c.connect(ctx) }); err != nil {
		c.stop()
		return nil, fmt.Errorf("the API server: %w", err)
	}
	c.seen, err = watch(ctx, c.kube)
	if err != nil {
		c.stop()
	}
	return c, err
}

func (c *cluster) stop() {
	_ = c.process.Process.Kill()
	_ = c.process.Wait() // by the signal
}

func (c *cluster) connect(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.ContentType = -1, "application/vnd.kubernetes.protobuf"
	if c.kube, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	nodes, err := c.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err == nil && len(nodes.Items) == 0 {
		err = errors.New("it has no node")
	}
	if err == nil {
		c.node = nodes.Items[0].Name
	}
	return err
}

// fill makes the cluster have so many Services, with so many endpoints. It takes none away.
func (c *cluster) fill(ctx context.Context, s size) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range s.services + probes {
		n := s.endpoints
		if i < probes {
			n = 1
		}
		made, of := i < c.made, slice(i, endpoints(acceptingPods, i*s.endpoints, n))
		group.Go(func() error {
			if made {
				return c.put(ctx, of)
			}
			_, err := c.kube.CoreV1().Services(namespace).Create(ctx, service(i), metav1.CreateOptions{})
			if err == nil {
				_, err = c.kube.DiscoveryV1().EndpointSlices(namespace).Create(ctx, of, metav1.CreateOptions{})
			}
			return err
		})
	}
	c.has, c.made = s, max(c.made, s.services+probes)
	return group.Wait()
}

// resetProbes leads all probes to where connections are accepted.
func (c *cluster) resetProbes(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range probes {
		group.Go(func() error { return c.put(ctx, turn(i, 1).slice) })
	}
	return group.Wait()
}

func (c *cluster) put(ctx context.Context, s *discoveryv1.EndpointSlice) error {
	_, err := c.kube.DiscoveryV1().EndpointSlices(namespace).Update(ctx, s, metav1.UpdateOptions{})
	return err
}

// vip is where Service i is reached. The first are probes.
func vip(i int) netip.AddrPort { return netip.AddrPortFrom(nth(firstService, i), 80) }

func service(i int) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name(i)}, Spec: corev1.ServiceSpec{
		ClusterIP: vip(i).Addr().String(), Ports: []corev1.ServicePort{{Port: 80}}}}
}

func name(i int) string { return fmt.Sprintf("s%05d", i) }

// endpoints are n addresses of a range, from the one with a number on.
func endpoints(in netip.Prefix, from, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = nth(in.Addr(), (from+i)%maxEndpoints).String()
	}
	return out
}

func slice(i int, addresses []string) *discoveryv1.EndpointSlice {
	port, unnamed, node := int32(8080), "", "n1"
	s := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &unnamed, Port: &port}}}
	s.Name, s.Labels = name(i), map[string]string{discoveryv1.LabelServiceName: name(i)}
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}, NodeName: &node})
	}
	return s
}

func nth(first netip.Addr, i int) netip.Addr {
	a := first.As4()
	n := int(a[1])<<16 + int(a[2])<<8 + int(a[3]) + i
	return netip.AddrFrom4([4]byte{a[0], byte(n >> 16), byte(n >> 8), byte(n)})
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// until tries again and again, for at most so long, and not when a proxy ended.
func until(ctx context.Context, limit time.Duration, try func() error) error {
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	for {
		err := try()
		if err == nil || errors.Is(err, errEnded) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %v: %w", limit, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
