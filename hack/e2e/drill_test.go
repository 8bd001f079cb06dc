package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestDrills runs a drill with each method while somebody asks for a name all the time. What the reports say of DNS has to be what that
// observer saw, and no Cluster is otherwise afterwards. Acceptance tests 1, 2 and 3 of drills; of 3 the part of DNS: the client that connects is of `make demo REAL=1`.
func TestDrills(t *testing.T) {
	home(t)
	serve(t, "drilled", 6)
	service, err := s.members["east-a"].client.CoreV1().Services(ns).Get(t.Context(), "drilled", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	address := service.Status.LoadBalancer.Ingress[0].IP
	for _, c := range []struct{ method, hold string }{{"shift", "10s"}, {"evacuate", "30s"}, {"isolate", "20s"}} {
		t.Run(c.method, func(t *testing.T) {
			before := clusterSpecs(t)
			o := &stub{name: strings.Join([]string{"drilled", ns, s.env["FEDERATION_NAME"], "svc", s.env["DNS_ZONE"]}, "."), servers: []string{s.env["DNS_ADDRESS"]}}
			ctx, stop := context.WithCancel(context.Background())
			var running sync.WaitGroup
			running.Go(func() { o.run(ctx) })
			name := "drill-" + c.method
			out, err := s.kubectl(t, "", "federation", "drill", "run", name, "--cluster", "east-a", "--method", c.method, "--reason", "a test", "--baseline", "5s", "--allow", "Quiet,Rested",
				"--hold", c.hold, "--out-of-dns", "5s", "--yes")
			stop()
			running.Wait()
			remove(t, func(ctx context.Context) error {
				return s.fed.dyn.Resource(v1beta1.FailoverDrillsResource).Delete(ctx, name, metav1.DeleteOptions{})
			})
			t.Logf("\n%s", out)
			if err != nil {
				t.Fatal(err)
			}
			report, err := s.kubectl(t, "", "federation", "drill", "report", name, "-o", "json")
			if err != nil {
				t.Fatal(err, report)
			}
			d := &v1beta1.FailoverDrill{}
			if err := json.Unmarshal([]byte(report), d); err != nil {
				t.Fatal(err)
			}
			o.agrees(t, address, &d.Status.Report.Marks)
			if after := clusterSpecs(t); after != before {
				t.Errorf("the Clusters were\n%s\nand are\n%s", before, after)
			}
		})
	}
}

// TestAnAbortedIsolation fails a member over by an isolation, and aborts it: the member serves again within 10 s, what ran there has run on, and its
// Cluster is as it was.
func TestAnAbortedIsolation(t *testing.T) {
	home(t)
	serve(t, "isolated", 6)
	before := clusterSpecs(t)
	pods := func() string {
		u, err := s.members["east-a"].client.AppsV1().ReplicaSets(ns).Get(t.Context(), "isolated", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if u.Status.ReadyReplicas != *u.Spec.Replicas {
			t.Errorf("%d of %d replicas are ready in east-a", u.Status.ReadyReplicas, *u.Spec.Replicas)
		}
		return fmt.Sprint(u.UID, u.Generation)
	}
	eventually(t, 30*time.Second, func() string {
		u, err := s.members["east-a"].client.AppsV1().ReplicaSets(ns).Get(t.Context(), "isolated", metav1.GetOptions{})
		if err != nil || u.Status.ReadyReplicas != 2 {
			return fmt.Sprintf("not ready: %v", err)
		}
		return ""
	})
	ran := pods()
	const name = "drill-aborted"
	if out, err := s.kubectl(t, "", "federation", "drill", "run", name, "--cluster", "east-a", "--method", "isolate", "--isolate-as", "refused", "--reason", "a test", "--baseline", "5s", "--allow", "Quiet,Rested",
		"--hold", "10m", "--yes", "--detach"); err != nil {
		t.Fatal(err, out)
	}
	drills := s.fed.dyn.Resource(v1beta1.FailoverDrillsResource)
	remove(t, func(ctx context.Context) error { return drills.Delete(ctx, name, metav1.DeleteOptions{}) })
	drill := func() *v1beta1.FailoverDrill {
		u, err := drills.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		d := &v1beta1.FailoverDrill{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	becomes := func(what string, within time.Duration, so func(*v1beta1.FailoverDrill) bool) {
		t.Helper()
		for end := time.Now().Add(within); !so(drill()); time.Sleep(200 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("not %s within %s: %+v", what, within, drill().Status)
			}
		}
	}
	becomes("ready elsewhere", 2*time.Minute, func(d *v1beta1.FailoverDrill) bool {
		return d.Status.Report != nil && d.Status.Report.Marks.ReadyElsewhere != nil
	})
	if now := pods(); now != ran {
		t.Errorf("the isolated member had %s, and has %s", ran, now)
	}
	if status, err := s.kubectl(t, "", "federation", "status"); err != nil || !strings.Contains(status, name) {
		t.Errorf("status does not name the drill: %v\n%s", err, status)
	}
	if out, err := s.kubectl(t, "", "federation", "drill", "abort", name, "--reason", "enough"); err != nil {
		t.Fatal(err, out)
	}
	at := time.Now()
	becomes("over", 15*time.Second, (*v1beta1.FailoverDrill).IsFinished)
	marks := drill().Status.Report.Marks
	t.Logf("refused connections: judged lost after %s, out of DNS %s, failed over %s, ready elsewhere %s; over %s after the abort",
		marks.Detected.Sub(marks.Injected.Time), marks.OutOfDNS.Sub(marks.Injected.Time), marks.Out.Sub(marks.Injected.Time), marks.ReadyElsewhere.Sub(marks.Injected.Time), time.Since(at))
	if d := drill(); d.Status.Outcome != v1beta1.DrillInterrupted || d.Status.Reason != v1beta1.DrillOperator || len(d.Status.Report.LeftBehind) > 0 {
		t.Errorf("%s, %s: %s; left behind %v", d.Status.Outcome, d.Status.Reason, d.Status.Message, d.Status.Report.LeftBehind)
	}
	if after := clusterSpecs(t); after != before {
		t.Errorf("the Clusters were\n%s\nand are\n%s", before, after)
	}
	home(t) // all serve
}

// agrees checks the marks of a report against what the stub was answered: when an address was given out for the last time, and when again.
func (c *stub) agrees(t *testing.T, address string, marks *v1beta1.DrillMarks) {
	t.Helper()
	var last, again time.Time
	for _, r := range c.replies {
		switch gives := slices.Contains(r.addresses, address); {
		case gives && r.at.Before(marks.Recovering.Time):
			last = r.at
		case gives && again.IsZero() && r.at.After(marks.Recovering.Time):
			again = r.at
		case !gives && len(r.addresses) == 0:
			t.Errorf("at %s: %s without an address", r.at.Format(time.TimeOnly), r.rcode)
		}
	}
	if off := marks.OutOfDNS.Sub(last); off < -100*time.Millisecond || off > patience*2*time.Second {
		t.Errorf("out of DNS at %s by the report, last given out at %s", marks.OutOfDNS, last)
	}
	if off := marks.BackInDNS.Sub(again); off < -time.Second || off > patience*4*time.Second {
		t.Errorf("back in DNS at %s by the report, first given out again at %s", marks.BackInDNS, again)
	}
	t.Logf("the observer saw the address %.1f s after the fault for the last time, the report says %.1f s; back %.1f s after the way back began, the report says %.1f s",
		last.Sub(marks.Injected.Time).Seconds(), marks.OutOfDNS.Sub(marks.Injected.Time).Seconds(),
		again.Sub(marks.Recovering.Time).Seconds(), marks.BackInDNS.Sub(marks.Recovering.Time).Seconds())
}

// clusterSpecs are the specs and annotations of all Clusters, as text.
func clusterSpecs(t *testing.T) string {
	t.Helper()
	list, err := s.fed.dyn.Resource(v1beta1.ClustersResource).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, u := range list.Items {
		text, err := json.Marshal([]any{u.GetName(), u.Object["spec"], u.GetAnnotations()})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(text))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}
