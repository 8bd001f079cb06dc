package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"federation/nodeagent/nettest"
)

// long is `make soak-dataplane`: a thousand changes and the death of the API server, in place of 30 changes.
var long = flag.Bool("long", false, "soak for minutes")

// askers keep connecting to a Service, with a new connection per request, until one fails.
type askers struct {
	asked []atomic.Int64
	stop  context.CancelFunc
	group sync.WaitGroup
	mu    sync.Mutex
	err   error
}

func ask(ctx context.Context, each ...func() error) *askers {
	a := &askers{asked: make([]atomic.Int64, len(each))}
	ctx, a.stop = context.WithCancel(ctx)
	for i, f := range each {
		a.group.Go(func() {
			for ctx.Err() == nil {
				if err := f(); err != nil {
					a.mu.Lock()
					a.err = errors.Join(a.err, fmt.Errorf("asker %d, after %d answers: %w", i, a.asked[i].Load(), err))
					a.mu.Unlock()
					return
				}
				a.asked[i].Add(1)
			}
		})
	}
	return a
}

func (a *askers) failed() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// more waits until each asker has had n more answers.
func (a *askers) more(t *testing.T, n int64) {
	t.Helper()
	for i := range a.asked {
		want := a.asked[i].Load() + n
		eventually(t, "answers", func() error {
			if err := a.failed(); err != nil {
				t.Fatal(err)
			}
			if a.asked[i].Load() < want {
				return fmt.Errorf("asker %d has %d of %d", i, a.asked[i].Load(), want)
			}
			return nil
		})
	}
}

// soak is a Service with two endpoints, of which one at least is in use at any time.
type soak struct {
	*site
	here, there *nettest.Host
	vip         netip.Addr
	round       int
}

const legacy = "iptables legacy"

const soakNodePort, soakNodePortUDP = 30080, 30053

// No connection to a living Service fails, by TCP and UDP, from a pod and from outside: while other Services change,
// its own endpoints do, the agent ends and is killed, and the API server hangs and is killed.
func TestNoConnectionFails(t *testing.T) {
	for _, mode := range append(proxyModes(), legacy) {
		t.Run(mode, func(t *testing.T) {
			s := newSoak(t, mode)
			client := s.Nodes[0].Pod(t, "client")
			agent := s.serve()
			s.settled(client)
			a := ask(t.Context(), s.both(client, s.vip, 80, 53), s.both(s.Outside, s.Nodes[0].V4, soakNodePort, soakNodePortUDP))
			defer a.stop()
			s.change(client)
			for _, by := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
				s.end(agent, by)
				s.turn() // no watch reports it
				a.more(t, 50)
				agent = s.serve()
				s.settled(client)
			}
			s.outage(a, client)
			if err := a.failed(); err != nil {
				t.Error(err)
			}
			s.end(agent, syscall.SIGTERM)
			s.run("--cleanup")
			eventually(t, "those who ask notice that the rules are gone", func() error {
				if a.failed() == nil {
					return errors.New("nobody did")
				}
				return nil
			})
			for i := range a.asked {
				t.Logf("asker %d: %d times TCP and UDP", i, a.asked[i].Load())
			}
		})
	}
}

// both asks a Service's TCP and then its UDP port.
func (s *soak) both(from *nettest.Host, at netip.Addr, tcp, udp uint16) func() error {
	return func() error {
		if _, err := from.Get(netip.AddrPortFrom(at, tcp)); err != nil {
			return err
		}
		_, err := from.AskOnce(netip.AddrPortFrom(at, udp))
		return err
	}
}

// change changes other Services, and now and then the endpoints of the one that is asked.
func (s *soak) change(client *nettest.Host) {
	n := 30
	if *long {
		n = 1000
	}
	for i := range n {
		s.other(i)
		if i%5 == 0 {
			s.turn()
		}
	}
	s.settled(client)
}

// outage stops the API server and, if there is time, kills it; its events after that still arrive.
func (s *soak) outage(a *askers, client *nettest.Host) {
	s.Helper()
	if err := s.process.Signal(syscall.SIGSTOP); err != nil {
		s.Fatal(err)
	}
	a.more(s.T, 100)
	if err := s.process.Signal(syscall.SIGCONT); err != nil {
		s.Fatal(err)
	}
	s.settled(client)
	if *long {
		s.kill()
		a.more(s.T, 1000)
		s.start(s.T)
		s.settled(client)
	}
}

func newSoak(t *testing.T, mode string) *soak {
	s := &soak{site: newSite(t, mode)}
	s.here, s.there = s.Nodes[0].Pod(t, "here"), s.Nodes[1].Pod(t, "there")
	for _, h := range []*nettest.Host{s.here, s.there} {
		h.ServeHTTP(t, 8080)
		h.ServeUDP(t, 53)
	}
	made, err := s.kube.CoreV1().Services("default").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "soak"},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{
			{Name: "web", Port: 80, TargetPort: intstr.FromInt32(8080), NodePort: soakNodePort},
			{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP, NodePort: soakNodePortUDP},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.kube.CoreV1().Services("default").Delete(context.Background(), "soak", metav1.DeleteOptions{})
	})
	s.vip = netip.MustParseAddr(made.Spec.ClusterIP)
	s.turn()
	return s
}

// turn gives the Service other endpoints, and returns them.
func (s *soak) turn() []*nettest.Host {
	s.Helper()
	s.round++
	hosts := [][]*nettest.Host{{s.here}, {s.here, s.there}, {s.there}, {s.there, s.here}}[s.round%4]
	s.slice("soak", hosts...)
	return hosts
}

// settled waits until the agent has the latest change: a Service whose only endpoint answers.
func (s *soak) settled(client *nettest.Host) {
	s.Helper()
	hosts := s.turn()
	if len(hosts) > 1 {
		hosts = s.turn()
	}
	eventually(s.T, "the last change is live", func() error {
		for range 8 { // one of two endpoints would hardly answer all of them
			if err := s.ask(client, netip.AddrPortFrom(s.vip, 80), hosts[0]); err != nil {
				return err
			}
		}
		return nil
	})
}

// slice writes the EndpointSlice of a Service with the ports web and dns.
func (s *soak) slice(service string, hosts ...*nettest.Host) {
	s.Helper()
	port := func(name string, port int32, protocol corev1.Protocol) discoveryv1.EndpointPort {
		return discoveryv1.EndpointPort{Name: &name, Port: &port, Protocol: &protocol}
	}
	e := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: service, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{port("web", 8080, corev1.ProtocolTCP), port("dns", 53, corev1.ProtocolUDP)},
	}
	for _, h := range hosts {
		e.Endpoints = append(e.Endpoints, discoveryv1.Endpoint{Addresses: []string{h.V4.String()}})
	}
	api := s.kube.DiscoveryV1().EndpointSlices("default")
	if _, err := api.Update(s.Context(), e, metav1.UpdateOptions{}); err != nil {
		if _, err = api.Create(s.Context(), e, metav1.CreateOptions{}); err != nil {
			s.Fatal(err)
		}
	}
}

// other creates, changes or deletes an unused Service.
func (s *soak) other(i int) {
	s.Helper()
	name, api := fmt.Sprintf("other-%d", i%7), s.kube.CoreV1().Services("default")
	err := api.Delete(s.Context(), name, metav1.DeleteOptions{})
	if i%3 != 2 {
		_, err = api.Create(s.Context(), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "web", Port: 80}}},
		}, metav1.CreateOptions{})
		s.slice(name, []*nettest.Host{s.here, s.there}[i%2])
	}
	if err != nil && i%3 != 2 {
		s.Fatal(err)
	}
}

// Rules that somebody else deletes are back within seconds, while the agent runs.
func TestFlushedRulesComeBack(t *testing.T) {
	for mode, harms := range map[string][][]string{
		"iptables": {{"iptables-nft", "-t", "nat", "-F"}, {"iptables-nft", "-t", "nat", "-F", "KUBE-SERVICES"}, {"nft", "flush", "ruleset"}},
		legacy:     {{"iptables-legacy", "-t", "nat", "-F"}, {"iptables-legacy", "-t", "nat", "-F", "KUBE-SERVICES"}},
		"nftables": {{"nft", "flush", "ruleset"}, {"nft", "delete", "table", "ip", "federation"}, {"nft", "flush", "chain", "ip", "federation", "nat-prerouting"}},
	} {
		t.Run(mode, func(t *testing.T) {
			s := newSoak(t, mode)
			client := s.Nodes[0].Pod(t, "client")
			s.serve()
			s.settled(client)
			for _, harm := range harms {
				if err := s.Nodes[0].Do(func() error { return exec.Command(harm[0], harm[1:]...).Run() }); err != nil {
					t.Fatalf("%v: %v", harm, err)
				}
				start, failures := time.Now(), 0
				eventually(t, "the Service answers again", func() error {
					c, err := client.DialWithin(netip.AddrPortFrom(s.vip, 80), 50*time.Millisecond)
					if err != nil {
						failures++
						return err
					}
					return c.Close()
				})
				took := time.Since(start)
				t.Logf("%s: %v: back after %v, %d connects failed", mode, harm, took.Round(time.Millisecond), failures)
				if took > 10*time.Second {
					t.Errorf("%v: back only after %v", harm, took)
				}
				s.settled(client)
			}
		})
	}
}
