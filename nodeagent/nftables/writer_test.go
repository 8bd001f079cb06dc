package nftables

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"golang.org/x/sys/unix"

	"federation/nodeagent/nettest"
	"federation/nodeagent/nfnetlink"
	"federation/nodeagent/ruleset"
)

// kernelOf is a Writer in a namespace with a model, and nft beside it.
type kernelOf struct {
	*Writer
	t     testing.TB
	node  *nettest.Node
	model *ruleset.Model
}

func newKernel(t testing.TB) *kernelOf {
	k := &kernelOf{t: t, node: nettest.New(t).Nodes[0]}
	k.model = ruleset.New(ruleset.Node{Name: "node-0", Federations: []string{"a-federation"}, Addrs: []netip.Addr{k.node.V4, k.node.V6},
		Pods: ruleset.Pods{CIDRs: []netip.Prefix{nettest.ClusterV4, nettest.ClusterV6}}})
	k.restart()
	return k
}

func (k *kernelOf) restart() {
	k.t.Helper()
	if err := k.node.Do(func() (err error) { k.Writer, err = New(); return err }); err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(k.Close)
}

func (k *kernelOf) sync() int {
	k.t.Helper()
	if err := k.Sync(context.Background(), k.model.Node(), k.model.Ports()); err != nil {
		k.t.Fatal(err)
	}
	return k.Wrote()
}

func (k *kernelOf) update(keys ...ruleset.Key) {
	k.t.Helper()
	if err := k.Write(context.Background(), k.model.Node(), k.model.Update(keys...).Ports); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kernelOf) nft(args ...string) string {
	k.t.Helper()
	var out []byte
	if err := k.node.Do(func() (err error) { out, err = exec.Command("/usr/sbin/nft", args...).CombinedOutput(); return err }); err != nil {
		k.t.Fatalf("nft %v: %v: %s", args, err, out)
	}
	return string(out)
}

// service returns one with an address in each family, and n endpoints from the offset first on.
func service(i int) *corev1.Service {
	v4, v6 := netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)}).String(), fmt.Sprintf("fd00:10:96::%x", i+1)
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("s%d", i)},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, ClusterIP: v4, ClusterIPs: []string{v4, v6},
			Ports: []corev1.ServicePort{{Name: "p", Protocol: corev1.ProtocolTCP, Port: 80}}},
	}
}

func endpointSlices(service string, first, n int) (out []*discoveryv1.EndpointSlice) {
	name, port, tcp, node := "p", int32(8080), corev1.ProtocolTCP, "node-0"
	for _, kind := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		s := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: service + "-" + strings.ToLower(string(kind)),
				Labels: map[string]string{discoveryv1.LabelServiceName: service}},
			AddressType: kind, Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &tcp}},
		}
		for i := first; i < first+n; i++ {
			addr := netip.AddrFrom4([4]byte{10, 180 + byte(i>>16), byte(i >> 8), byte(i)}).String()
			if kind == discoveryv1.AddressTypeIPv6 {
				addr = fmt.Sprintf("fd00:10:180:%x::%x", i>>16, i&0xffff)
			}
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{addr}, NodeName: &node})
		}
		out = append(out, s)
	}
	return out
}

// fill adds Services with endpoints, some of each kind.
func (k *kernelOf) fill(n int, r *rand.Rand) {
	for i := range n {
		k.update(k.vary(i, r)...)
	}
}

// vary rebuilds a Service at random.
func (k *kernelOf) vary(i int, r *rand.Rand) (keys []ruleset.Key) {
	s := service(i)
	if r.IntN(2) == 0 {
		s.Spec.Ports[0].NodePort = int32(30000 + i)
	}
	if r.IntN(3) == 0 {
		s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	}
	if r.IntN(3) == 0 {
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	}
	if r.IntN(3) == 0 {
		s.Spec.Type = corev1.ServiceTypeLoadBalancer
		s.Spec.LoadBalancerSourceRanges = []string{"198.51.100.0/24", "2001:db8:1::/64", "203.0.113.7/32"}[:r.IntN(4)]
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: fmt.Sprintf("203.0.113.%d", i)}, {IP: fmt.Sprintf("2001:db8:2::%d", i)}}
	}
	keys = append(keys, k.model.SetService(s))
	for _, slice := range endpointSlices(s.Name, r.IntN(50), r.IntN(5)) {
		keys = append(keys, k.model.SetSlice(slice)...)
	}
	if r.IntN(8) == 0 {
		keys = append(keys, k.model.DeleteService(keys[0]))
	}
	return keys
}

// Whatever changes were written one by one, the kernel has what a full load would have written: Sync finds no
// difference, nor does that of a new process.
func TestChangesLeadToTheWhole(t *testing.T) {
	k, r := newKernel(t), rand.New(rand.NewPCG(3, 4))
	k.sync()
	k.fill(30, r)
	for step := range 100 {
		k.update(append(k.vary(r.IntN(30), r), k.vary(r.IntN(30), r)...)...)
		if step%10 == 0 {
			if n := k.sync(); n != 0 {
				t.Fatalf("step %d: after a Write, Sync still had %d messages to write", step, n)
			}
		}
	}
	k.restart()
	if n := k.sync(); n != 0 {
		t.Errorf("a new process with nothing changed wrote %d messages", n)
	}
}

// Foreign changes to our tables are undone, and others' tables are left alone.
func TestForeignHands(t *testing.T) {
	k := newKernel(t)
	k.nft("add table ip theirs")
	k.nft("add chain ip theirs c")
	k.sync()
	k.fill(10, rand.New(rand.NewPCG(5, 6)))
	want := k.nft("list ruleset")
	if !strings.Contains(want, "table ip theirs") || !strings.Contains(want, "10.96.0.1 . tcp . 80 : goto ") {
		t.Fatalf("nft shows:\n%s", want)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	lost := make(chan struct{}, 64)
	ended := make(chan error, 1)
	go func() { ended <- k.Watch(ctx, func() { lost <- struct{}{} }) }()
	for _, hand := range []string{
		"delete table ip federation",
		"flush table ip6 federation",
		"flush chain ip federation nat-prerouting",
		"flush chain ip federation after-nat",
		"flush map ip federation endpoints",
		"add rule ip federation dispatch drop",
		"add set ip6 federation foreign { type ipv4_addr; }",
		"add element ip federation cluster-ips { 1.2.3.4 }",
		"add chain ip federation foreign",
	} {
		k.nft(strings.Fields(hand)...)
		select {
		case <-lost:
		case <-time.After(5 * time.Second):
			t.Fatalf("%s: nobody noticed", hand)
		}
		if n := k.sync(); n == 0 {
			t.Errorf("%s: nothing was written", hand)
		}
		if n := k.sync(); n != 0 {
			t.Errorf("%s: %d messages were still to be written", hand, n)
		}
		for len(lost) > 0 { // a hand's transaction may come in several datagrams
			<-lost
		}
	}
	k.nft("add", "chain", "ip", "theirs", "d")
	k.sync()
	select {
	case <-lost:
		t.Error("our own writing, or that into another table, counts as a foreign hand")
	default:
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Watch ended: %v", err)
	}
	k.restart()
	if err := k.Cleanup(context.Background()); err != nil {
		t.Fatal(err)
	}
	if left := k.nft("list", "ruleset"); strings.Contains(left, TableName) || !strings.Contains(left, "chain d") {
		t.Errorf("after Cleanup there is:\n%s", left)
	}
}

// If somebody deletes a table at any time during a load, or right after it, Sync itself repairs it, or Watch notices.
func TestForeignHandsDuringALoad(t *testing.T) {
	k := newKernel(t)
	k.sync()
	k.fill(500, rand.New(rand.NewPCG(9, 10)))
	lost := make(chan struct{}, 1)
	go func() {
		_ = k.Watch(t.Context(), func() {
			select {
			case lost <- struct{}{}:
			default: // a hand's transaction comes in several datagrams
			}
		})
	}()
	var other *nfnetlink.Socket
	if err := k.node.Do(func() (err error) { other, err = nfnetlink.Dial(); return err }); err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for range 10 {
		if err := k.Cleanup(t.Context()); err != nil {
			t.Fatal(err)
		}
		for len(lost) > 0 { // of the round before
			<-lost
		}
		taken := make(chan error)
		go func() {
			for {
				var b nfnetlink.Batch
				(&transaction{t: &table{name: TableName, family: unix.NFPROTO_IPV6}, batch: &b}).table(unix.NFT_MSG_DELTABLE, 0)
				if err := other.Commit(&b); !errors.Is(err, unix.ENOENT) {
					taken <- err
					return
				}
			}
		}()
		k.sync()
		if err := <-taken; err != nil {
			t.Fatal(err)
		}
		if strings.Contains(k.nft("list", "tables"), "ip6 federation") {
			continue
		}
		select {
		case <-lost:
		case <-time.After(5 * time.Second):
			t.Fatal("the table is gone, and nobody noticed")
		}
	}
}

// If foreign changes never end, Sync ends with an error instead of retrying for ever. When they end, a Sync restores
// everything.
func TestWriterUnderEndlessForeignWrites(t *testing.T) {
	k := newKernel(t)
	r := rand.New(rand.NewPCG(11, 12))
	for i := range 300 {
		k.model.Update(k.vary(i, r)...)
	}
	var other *nfnetlink.Socket
	if err := k.node.Do(func() (err error) { other, err = nfnetlink.Dial(); return err }); err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var stop atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for !stop.Load() {
			var b nfnetlink.Batch
			(&transaction{t: &table{name: TableName, family: unix.NFPROTO_IPV4}, batch: &b}).remove()
			_ = other.Commit(&b) // ours may win
		}
	}()
	// On a busy machine the hand may be too slow to be in the way of one Sync.
	start := time.Now()
	for failed := false; !failed; {
		if time.Since(start) > time.Minute {
			t.Fatal("the hand was too slow to be in Sync's way")
		}
		done := make(chan error, 1)
		go func() { done <- k.Sync(context.Background(), k.model.Node(), k.model.Ports()) }()
		select {
		case err := <-done:
			failed = err != nil
		case <-time.After(time.Minute):
			t.Fatal("Sync does not end")
		}
	}
	stop.Store(true)
	<-ended
	k.sync()
	if n := k.sync(); n != 0 {
		t.Errorf("%d messages were still to be written", n)
	}
}

// A table of an older version, with other sets, is replaced.
func TestOtherVersion(t *testing.T) {
	k := newKernel(t)
	k.nft("add table ip federation")
	k.nft("add set ip federation refused { type ipv4_addr; }")
	k.nft("add chain ip federation nat-output { type filter hook output priority 5; }")
	if n := k.sync(); n == 0 {
		t.Error("nothing was written")
	}
	if n := k.sync(); n != 0 {
		t.Errorf("%d messages were still to be written", n)
	}
}

// Another node has other rules, also if it comes with a change.
func TestNodeChanges(t *testing.T) {
	k, r := newKernel(t), rand.New(rand.NewPCG(7, 8))
	k.sync()
	k.fill(5, r)
	node := *k.model.Node()
	node.NodePortAddrs = []netip.Addr{k.node.V4}
	keys := k.model.SetNode(node)
	k.update(append(keys, k.vary(1, r)...)...)
	if !strings.Contains(k.nft("list", "chain", "ip", "federation", "dispatch"), k.node.V4.String()) {
		t.Error("node ports are not limited to the node's new address")
	}
	if n := k.sync(); n != 0 {
		t.Errorf("%d messages were still to be written", n)
	}
}

// Write without knowing the kernel's state is an error, not a guess.
func TestWriteBeforeSync(t *testing.T) {
	if err := newKernel(t).Write(context.Background(), nil, nil); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("Write before Sync: %v", err)
	}
}
