package lbprovider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"federation/controllers/lbprovider/plan"
	"federation/nodeagent/ruleset"
)

// kernel is what a provider writes.
type kernel struct {
	mu    sync.Mutex
	ports map[portKey]*ruleset.Port
	held  []netip.Addr
	fails bool // the next write does, after half of it
}

func (k *kernel) Sync(_ context.Context, _ *ruleset.Node, ports []*ruleset.Port) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ports = map[portKey]*ruleset.Port{}
	for _, p := range ports {
		k.ports[portKey{p.ID, p.IPv6}] = p
	}
	return nil
}

func (k *kernel) Write(_ context.Context, _ *ruleset.Node, changes []ruleset.PortChange) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fails {
		k.fails, k.ports = false, nil
		return fmt.Errorf("no room")
	}
	for _, c := range changes {
		if c.After == nil {
			delete(k.ports, portKey{c.Before.ID, c.Before.IPv6})
		} else {
			k.ports[portKey{c.After.ID, c.After.IPv6}] = c.After
		}
	}
	return nil
}

func (k *kernel) Hold(addresses []netip.Addr) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held = slices.Clone(addresses)
	return nil
}

// has says what is held, and how each Service's first port is served.
func (k *kernel) has() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var ports []string
	for key, p := range k.ports {
		to := ""
		for _, b := range p.Cluster.Backends {
			to += " " + b.Addr.String()
		}
		ports = append(ports, fmt.Sprintf("%s at %s:%s", key.id.Name, p.Frontends[0].Key.Addr, to))
	}
	slices.Sort(ports)
	return fmt.Sprint(k.held, " ", strings.Join(ports, ", "))
}

func eventually(t *testing.T, what string, is func() string, want string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		got := is()
		if got == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %s, want %s", what, got, want)
		}
	}
}

func lbService(name, class, recorded string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("of " + name), ResourceVersion: "1"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, Ports: []corev1.ServicePort{{Port: 80, NodePort: 30080, Protocol: corev1.ProtocolTCP}}}}
	if class != "" {
		s.Spec.LoadBalancerClass = &class
	}
	if recorded != "" {
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: recorded}}
	}
	return s
}

// TestAProvider gives its own Services addresses, holds these while it has the Lease, and leaves all others as they are.
func TestAProvider(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}}}
	kube := fake.NewClientset(node, lbService("web", plan.Class, ""), lbService("other", "example.com/other", "192.0.2.1"), lbService("clouds", "", "198.51.100.1"), lbService("full", plan.Class, ""))
	k, events := &kernel{}, record.NewFakeRecorder(100)
	var taken atomic.Bool // the fake has no versions: what we renew then, an API server refuses
	kube.PrependReactor("update", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
		lease := a.(clienttesting.UpdateAction).GetObject().(*coordinationv1.Lease)
		if taken.Load() && *lease.Spec.HolderIdentity == "us" {
			return true, nil, apierrors.NewConflict(schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, LeaseName, errors.New("another version"))
		}
		return false, nil, nil
	})
	ctx, stop := context.WithCancel(t.Context())
	p, err := New(Config{
		Settings: plan.Settings{Class: plan.Class, Default: true, Pools: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/31")}},
		Kube:     kube, Writer: k, Holder: k, LeaseNamespace: "kube-system", Name: "us",
	}, events)
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() { p.Run(ctx) })
	defer work.Wait()
	defer stop()

	// other has 192.0.2.1; full is older than web by its name, and has what is left.
	eventually(t, "held and served", k.has, "[192.0.2.0] full at 192.0.2.0: 10.0.0.1:30080")
	var said []string
	eventually(t, "events", func() string {
		for len(events.Events) > 0 {
			said = append(said, strings.Join(strings.Fields(<-events.Events)[:2], " "))
		}
		slices.Sort(said)
		return fmt.Sprint(said)
	}, "[Normal AddressesAssigned Warning AddressOfAnotherProvider Warning AddressPoolExhausted]")

	services := kube.CoreV1().Services("shop")
	if err := services.Delete(ctx, "full", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its address goes to who waits", k.has, "[192.0.2.0] web at 192.0.2.0: 10.0.0.1:30080")
	k.mu.Lock()
	k.fails = true
	k.mu.Unlock()
	node.Status.Addresses[0].Address = "10.0.0.2"
	if _, err := kube.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "after a write that failed", k.has, "[192.0.2.0] web at 192.0.2.0: 10.0.0.2:30080")

	taken.Store(true)
	giveLease(t, kube, "another")
	eventually(t, "another one has the Lease", k.has, "[] web at 192.0.2.0: 10.0.0.2:30080")
	taken.Store(false)
	eventually(t, "it ended", k.has, "[192.0.2.0] web at 192.0.2.0: 10.0.0.2:30080")

	onlyStatusOf(t, kube, "full", "web")
	stop()
	work.Wait()
	if got := k.has(); got != "[] web at 192.0.2.0: 10.0.0.2:30080" {
		t.Errorf("after its end: %s", got)
	}
	if lease, err := kube.CoordinationV1().Leases("kube-system").Get(t.Context(), LeaseName, metav1.GetOptions{}); err != nil || *lease.Spec.HolderIdentity != "" {
		t.Errorf("the Lease after its end: %v, %v", lease, err)
	}
}

// giveLease has somebody else hold the Lease from now on.
func giveLease(t *testing.T, kube kubernetes.Interface, to string) {
	t.Helper()
	leases, now := kube.CoordinationV1().Leases("kube-system"), metav1.NowMicro()
	lease, err := leases.Get(t.Context(), LeaseName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = &to, &now
	if _, err := leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// onlyStatusOf fails if anything was written of Services but the status of some.
func onlyStatusOf(t *testing.T, kube *fake.Clientset, names ...string) {
	t.Helper()
	for _, a := range kube.Actions() {
		if a.GetResource().Resource != "services" || !slices.Contains([]string{"update", "patch", "create"}, a.GetVerb()) {
			continue
		}
		u, ok := a.(clienttesting.UpdateAction)
		if !ok || a.GetSubresource() != "status" || !slices.Contains(names, u.GetObject().(*corev1.Service).Name) {
			t.Errorf("%s %s of %v", a.GetVerb(), a.GetSubresource(), a)
		}
	}
}

// TestChecksOfNodes: one that fails twice is out until it says that it is well, and one that hangs delays no other.
func TestChecksOfNodes(t *testing.T) {
	var code, hangs atomic.Int32
	code.Store(http.StatusOK)
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hangs.Load() > 0 {
			<-release
		}
		w.WriteHeader(int(code.Load()))
	}))
	defer s.Close()
	defer close(release)
	at := netip.MustParseAddrPort(s.Listener.Addr().String())
	c := &checks{port: at.Port(), changed: func() {}}
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { c.run(ctx) })
	defer work.Wait()
	defer stop()
	nobody := netip.MustParseAddr("127.0.0.2")
	asked := []plan.Member{{Node: "n", Addr: at.Addr()}, {Node: "nobody", Addr: nobody}}
	fails := func() string {
		c.ask(asked)
		return fmt.Sprint(c.failing())
	}
	none, one, both := fmt.Sprint(map[netip.Addr]bool{}), fmt.Sprint(map[netip.Addr]bool{nobody: true}), fmt.Sprint(map[netip.Addr]bool{nobody: true, at.Addr(): true})
	eventually(t, "nobody listens at one", fails, one)
	code.Store(http.StatusServiceUnavailable)
	eventually(t, "the other one is not well", fails, both)
	code.Store(http.StatusOK)
	eventually(t, "it is well again", fails, one)
	hangs.Store(1)
	eventually(t, "it hangs", fails, both)
	asked = nil
	eventually(t, "nobody is asked", fails, none)
}
