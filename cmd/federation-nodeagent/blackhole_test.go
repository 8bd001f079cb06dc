package main

import (
	"fmt"
	"net/netip"
	"os/exec"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/nodeagent/nettest"
)

// drilled is a node with a Service at a node port, and the Lease by which a drill takes it from clients outside.
type drilled struct {
	*site
	lease   string
	agent   *exec.Cmd
	outside netip.AddrPort
	inside  netip.AddrPort
	client  *nettest.Host
	server  *nettest.Host
	stays   func() (nettest.Answer, error)
	renewed time.Time
}

func newDrilled(t *testing.T, name string, nodePort int32) *drilled {
	t.Helper()
	d := &drilled{site: newSite(t, "nftables"), lease: "drill-" + name}
	d.client, d.server = d.Nodes[0].Pod(t, "client"), d.Nodes[1].Pod(t, "server")
	d.server.ServeHTTP(t, 8080)
	made, err := d.kube.CoreV1().Services("default").Create(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "drilled-" + name},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: nodePort}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.kube.CoordinationV1().Leases("default").Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: d.lease}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	d.endpoints("drilled-"+name, d.server)
	d.inside = netip.AddrPortFrom(netip.MustParseAddr(made.Spec.ClusterIP), 80)
	d.outside = netip.AddrPortFrom(d.Nodes[0].V4, uint16(nodePort))
	cmd := d.command()
	cmd.Args = append(cmd.Args, "--blackhole-lease", "default/"+d.lease)
	d.agent = d.begin(cmd)
	d.arrives(d.client, d.inside, d.server)
	d.arrives(d.Outside, d.outside, d.server)
	d.stays = d.client.Stay(t, d.inside)
	return d
}

// renew renews the Lease, as the federation does each 5 s.
func (d *drilled) renew() {
	d.Helper()
	leases, holder := d.kube.CoordinationV1().Leases("default"), "a-drill"
	lease, err := leases.Get(d.Context(), d.lease, metav1.GetOptions{})
	if err == nil {
		d.renewed = time.Now()
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = &holder, new(metav1.NewMicroTime(d.renewed))
		_, err = leases.Update(d.Context(), lease, metav1.UpdateOptions{})
	}
	if err != nil {
		d.Fatal(err)
	}
}

func (d *drilled) served() bool {
	c, err := d.Outside.DialWithin(d.outside, 100*time.Millisecond)
	if err == nil {
		_ = c.Close()
	}
	return err == nil
}

// dark waits until nobody outside is served.
func (d *drilled) dark() {
	d.Helper()
	begin := time.Now()
	eventually(d.T, "nobody outside is served", func() error {
		if d.served() {
			return fmt.Errorf("%s is served", d.outside)
		}
		return nil
	})
	d.Logf("%s: dropped within %v", d.lease, time.Since(begin).Round(time.Millisecond))
}

// ends checks that clients outside are served again 30 to 31 s after the last renewal, and those inside all the time.
func (d *drilled) ends(what string) {
	d.Helper()
	for !d.served() {
		if time.Since(d.renewed) > 35*time.Second {
			d.Fatalf("%s: 35 s after the last renewal clients outside get no answer", what)
		}
		if _, err := d.stays(); err != nil {
			d.Errorf("%s: an established connection inside: %v", what, err)
		}
		d.gets(d.client, d.inside, d.server)
	}
	took := time.Since(d.renewed)
	d.Logf("%s: served again %v after the last renewal", what, took.Round(10*time.Millisecond))
	if took < 28*time.Second || took > 31*time.Second {
		d.Errorf("%s: served again after %v, want 30 s, and 31 at most", what, took)
	}
}

// A blackhole ends 30 s after the last renewal, whatever dies then: the process that renewed it, the agent, the
// member's API. Acceptance test 28 of drills.
func TestABlackholeEndsWhateverDies(t *testing.T) {
	renewer, agent := newDrilled(t, "renewer", 30081), newDrilled(t, "agent", 30082)
	for _, d := range []*drilled{renewer, agent} {
		d.renew()
		d.dark()
	}
	time.Sleep(5 * time.Second)
	for _, d := range []*drilled{renewer, agent} {
		d.renew()
	}
	time.Sleep(time.Second)
	agent.end(agent.agent, syscall.SIGKILL)
	renewer.ends("nobody renews")
	agent.ends("the agent is killed")

	api := newDrilled(t, "api", 30083)
	api.renew()
	api.dark()
	api.kill()
	api.ends("the API is killed")
	api.start(t)
	time.Sleep(5 * time.Second) // the agent reads the Lease again, which has not changed
	if !api.served() {
		t.Error("the Lease of before drops again when the API is back")
	}
	api.renew()
	api.dark()
	if err := api.kube.CoordinationV1().Leases("default").Delete(t.Context(), api.lease, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	eventually(t, "served", func() error {
		if !api.served() {
			return fmt.Errorf("nobody outside is served")
		}
		return nil
	})
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("released, served after %v", took)
	}
}
