package nodeagent

import (
	"context"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"federation/nodeagent/ruleset"
)

// blackhole records for how long traffic from outside is to be dropped.
func (r *record) blackhole(_ context.Context, until time.Time) error {
	if until.IsZero() {
		return r.note("light")
	}
	return r.note("dark %s", time.Until(until).Round(time.Second))
}

func drillLease(holder string, renewed time.Time) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "federation-system", Name: "failover-drill"}}
	if holder != "" {
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = &holder, new(metav1.NewMicroTime(renewed))
	}
	return lease
}

// Each renewal of the Lease sets the kernel's timeout, less than 30 s; health check node ports fail meanwhile.
func TestTheKernelFollowsTheLease(t *testing.T) {
	c, r := fake.NewClientset(service("a", "10.0.0.1"), drillLease("", time.Time{})), &record{}
	run(t, c, r, func(a *Agent) {
		leases := c.CoordinationV1().Leases("federation-system")
		put := func(lease *coordinationv1.Lease) {
			_, _ = leases.Update(context.Background(), lease, metav1.UpdateOptions{})
			synctest.Wait()
		}
		checked := func() int {
			k, w := ruleset.Key{Namespace: "default", Name: "a"}, httptest.NewRecorder()
			a.Health.mu.Lock()
			a.Health.services[k] = &checked{healthCheck: healthCheck{endpoints: 1}}
			a.Health.mu.Unlock()
			a.Health.answer(w, k)
			return w.Code
		}
		if got := r.take(); got != "sync 1, light" || checked() != 200 {
			t.Errorf("at the start: %s, %d", got, checked())
		}
		put(drillLease("d", time.Now().Add(-2*time.Second)))
		if got := r.take(); got != "dark 28s" || checked() != 503 {
			t.Errorf("held: %s, %d", got, checked())
		}
		time.Sleep(5 * time.Second)
		r.fail = 1
		put(drillLease("d", time.Now()))
		time.Sleep(time.Second)
		synctest.Wait()
		if got := r.take(); got != "dark 29s" {
			t.Errorf("renewed, where the kernel fails once: %s", got)
		}
		time.Sleep(30 * time.Second)
		if checked() != 200 {
			t.Error("health checks are answered with no after the end")
		}
		put(drillLease("d", time.Now()))
		put(drillLease("", time.Time{}))
		if got := r.take(); got != "dark 30s, light" || checked() != 200 {
			t.Errorf("renewed and released: %s, %d", got, checked())
		}
		put(drillLease("d", time.Now()))
		_ = leases.Delete(context.Background(), "failover-drill", metav1.DeleteOptions{})
		synctest.Wait()
		if got := r.take(); got != "dark 30s, light" {
			t.Errorf("deleted: %s", got)
		}
	})
}

// An agent that should watch a Lease and has not seen it is not ready: the federation takes a ready agent for one that
// obeys it.
func TestReadyWhenTheLeaseHasBeenSeen(t *testing.T) {
	h := newHealth()
	h.awaitLease()
	h.written()
	ready := func() int {
		w := httptest.NewRecorder()
		h.Ready(w, nil)
		return w.Code
	}
	if got := ready(); got != 503 {
		t.Errorf("before: %d", got)
	}
	if h.sawLease(); ready() != 200 {
		t.Errorf("after: %d", ready())
	}
}
