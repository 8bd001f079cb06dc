package fleettest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/fleettest/memapi"
	"federation/dnsprovider"
)

const lawsText = `apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "web:1"}]}}
`

// begun is a fleet of three members with a Service and what it selects.
func begun(t *testing.T, do func(p *player)) {
	inFleet(t, func(t *testing.T, p *player) {
		run(t, p, "cluster add a region=r zone=a", "cluster add b region=r zone=b", "cluster add c region=r zone=c", "settle", "apply web.yaml", "settle")
		do(p)
	})
}

// inFleet calls do with a fleet that has no members yet, and with lawsText as web.yaml.
func inFleet(t *testing.T, do func(t *testing.T, p *player)) {
	synctest.Test(t, func(t *testing.T) {
		f, err := New(t.Context(), DefaultSettings(), synctest.Wait)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		do(t, &player{Fleet: f, files: map[string]string{"web.yaml": lawsText}})
	})
}

func run(t *testing.T, p *player, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if _, err := p.do(strings.Fields(line)); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
}

// breaks checks that one law, and no other, is seen to be broken.
func breaks(t *testing.T, p *player, law string) {
	t.Helper()
	err := p.Failures()
	var b *Broken
	if !errors.As(err, &b) || b.Law != law {
		t.Errorf("%q is broken, and what was seen is: %v", law, err)
	}
}

// zoneIs writes records past the controllers.
func zoneIs(p *player, change func([]dnsprovider.RRSet) []dnsprovider.RRSet) {
	p.DNS.mu.Lock()
	defer p.DNS.mu.Unlock()
	p.DNS.records = change(p.DNS.records)
	p.DNS.applied++
}

func TestEmptyZoneIsSeen(t *testing.T) {
	begun(t, func(p *player) {
		zoneIs(p, func([]dnsprovider.RRSet) []dnsprovider.RRSet { return nil })
		p.Pass(time.Second)
		breaks(t, p, neverEmpty)
	})
	begun(t, func(p *player) { // somebody deletes what a cluster serves: the federation may take its time, and no more
		p.Pass(upset + noticing)
		run(t, p, "member a delete svc/web", "member b delete svc/web", "member c delete svc/web")
		zoneIs(p, func([]dnsprovider.RRSet) []dnsprovider.RRSet { return nil })
		p.Pass(hearing)
		if err := p.Failures(); err != nil {
			t.Error(err)
		}
		zoneIs(p, func([]dnsprovider.RRSet) []dnsprovider.RRSet { return nil })
		p.Pass(time.Second)
		breaks(t, p, neverEmpty)
	})
	begun(t, func(p *player) { // it was never there
		p.mu.Lock()
		p.laws.dns = newDNSLaws()
		p.mu.Unlock()
		zoneIs(p, func([]dnsprovider.RRSet) []dnsprovider.RRSet { return nil })
		p.Pass(upset)
		if err := p.Failures(); err != nil {
			t.Error(err)
		}
		p.Pass(time.Second)
		breaks(t, p, neverEmpty)
	})
}

func TestLostAddressIsSeen(t *testing.T) {
	begun(t, func(p *player) {
		p.Pass(upset + noticing)
		var before []dnsprovider.RRSet
		zoneIs(p, func(all []dnsprovider.RRSet) []dnsprovider.RRSet { before = all; return all })
		run(t, p, "partition a", "wait 10s")
		if err := p.Failures(); err != nil {
			t.Error(err)
		}
		zoneIs(p, func([]dnsprovider.RRSet) []dnsprovider.RRSet { return before })
		p.Pass(time.Second)
		breaks(t, p, "DNS does not have what is lost")
	})
}

// What is asked for counts when the federation can have heard of it, also if nothing changes in the meantime.
func TestTakenReplicasAreSeen(t *testing.T) {
	begun(t, func(p *player) {
		resize := func(n int) {
			t.Helper()
			send := p.Member("a").Wire.dial(sender{process: 1}).Resource(replicaSets).Namespace("default")
			if _, err := send.Patch(p.ctx, "web", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			p.Pass(time.Second)
		}
		run(t, p, "processes 0", "fed watch silent", "scale rs/web 4", "wait 20s", "scale rs/web 9", "wait 1m")
		resize(0)
		if err := p.Failures(); err != nil {
			t.Errorf("nobody can have heard that 9 are asked for: %v", err)
		}
		run(t, p, "fed well", "processes 1", "settle", "processes 0", "wait 1m")
		resize(0)
		breaks(t, p, "law of ready replicas")
	})
}

func TestMovingOffTheWellIsSeen(t *testing.T) {
	begun(t, func(p *player) {
		run(t, p, "fed watch silent") // or it is put right before the law has seen it
		if err := phase(p, "a", "FailedOver"); err != nil {
			t.Fatal(err)
		}
		p.Pass(200 * time.Millisecond)
		breaks(t, p, "nobody is moved off who is well")
	})
	begun(t, func(p *player) {
		place(t, p, `{"clusters":{"b":1},"home":{"a":2,"b":2,"c":2}}`)
		if err := p.Failures(); err != nil {
			t.Errorf("fewer are asked for: %v", err)
		}
	})
	begun(t, func(p *player) {
		place(t, p, `{"clusters":{"b":3,"c":3},"home":{"a":2,"b":2,"c":2}}`)
		breaks(t, p, "nobody is moved off who is well")
	})
}

// place writes a placement of ReplicaSet web past the controllers, by the same preferences as before.
func place(t *testing.T, p *player, placement string) {
	t.Helper()
	was := v1beta1.ParsePlacement(p.Federation.Get(replicaSets, "default", "web").GetAnnotations()[v1beta1.PlacementAnnotation])
	is := v1beta1.ParsePlacement(placement)
	is.Inputs = was.Inputs
	body := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1beta1.PlacementAnnotation, is)
	_, err := p.processes.running[0].client.Resource(replicaSets).Namespace("default").Patch(p.ctx, "web", types.MergePatchType, []byte(body), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func TestMovingOffVolumesIsSeen(t *testing.T) {
	begun(t, func(p *player) {
		p.files["db.yaml"] = fmt.Sprintf(workloadText, "StatefulSet", "db", "", 6, 1, "", "") + claims
		run(t, p, "apply db.yaml", "settle", "kill a", "settle")
		body := `{"metadata":{"annotations":{"federation.kubernetes.io/placement":"{\"clusters\":{\"b\":3,\"c\":3}}"}}}`
		_, err := p.processes.running[0].client.Resource(statefulSets).Namespace("default").Patch(p.ctx, "db", types.MergePatchType, []byte(body), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		breaks(t, p, volumesStay)
	})
}

func phase(p *player, cluster, phase string) error {
	body := fmt.Sprintf(`{"status":{"failover":{"phase":%q}}}`, phase)
	_, err := p.processes.running[0].client.Resource(v1beta1.ClustersResource).Patch(p.ctx, cluster, types.MergePatchType, []byte(body), metav1.PatchOptions{}, "status")
	return err
}

func TestManyWritesAreSeen(t *testing.T) {
	begun(t, func(p *player) {
		send := p.Member("a").Wire.dial(sender{process: 1}).Resource(services).Namespace("default")
		for n := range mostWrites + 1 {
			body := fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d"}}}`, n)
			if _, err := send.Patch(p.ctx, "web", types.MergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		breaks(t, p, "no copy is written again and again")
	})
}

func TestTwoWritersAreSeen(t *testing.T) {
	begun(t, func(p *player) {
		now, before := p.processes.sessions.Add(2), p.processes.sessions.Load()-1
		for _, session := range []uint64{now, before} {
			body := fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d"}}}`, session)
			send := p.Member("a").Wire.dial(sender{process: 1, session: session}).Resource(services).Namespace("default")
			if _, err := send.Patch(p.ctx, "web", types.MergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		breaks(t, p, "one writer at a time")
		for _, session := range []uint64{now, before} {
			if err := p.processes.running[0].send(context.Background(), sender{process: 1, session: session, leads: true}, memapi.Request{Verb: "patch"}, func() error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		breaks(t, p, "one writer at a time")
	})
}

func TestADecisionOfALeaderOfBeforeIsSeen(t *testing.T) {
	l := newWriteLaws()
	phase := memapi.Request{Verb: "apply", Resource: v1beta1.ClustersResource, Subresource: "status", Name: "a"}
	for _, write := range []struct {
		by     sender
		of     string
		breaks bool
	}{
		{sender{session: 2, leads: true}, "a", false}, {sender{session: 1}, "a", false}, // the second reports, and decides nothing
		{sender{session: 1, leads: true}, "b", false}, {sender{session: 1, leads: true}, "a", true}, {sender{session: 3, leads: true}, "a", false},
	} {
		phase.Name = write.of
		if broken := l.decides(write.by, phase); (len(broken) > 0) != write.breaks {
			t.Errorf("%+v: %v", write, broken)
		}
	}
}

func TestLeavingBeforeThePodsIsSeen(t *testing.T) {
	begun(t, func(p *player) {
		p.files["policy.yaml"] = fmt.Sprintf(strings.Replace(policyText, "regions: [%s]", "names: [%s]", 1), "a", 1, "")
		p.files["o1.yaml"] = fmt.Sprintf(workloadText, "ReplicaSet", "o1", "", 3, 1, "", "") + "---\n" + fmt.Sprintf(configMapText, "o1", "1")
		run(t, p, "apply policy.yaml", "apply o1.yaml", "settle", "pods b never", `patch policy/p {"spec":{"clusters":{"names":["b"]}}}`, "wait 1m")
		send := p.Member("a").Wire.dial(sender{process: 1}).Resource(configMaps).Namespace("default")
		if err := send.Delete(p.ctx, "o1", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		breaks(t, p, podsFirst)
	})
}

func TestTouchedForeignObjectIsSeen(t *testing.T) {
	begun(t, func(p *player) {
		run(t, p, "member a expose rs/web debug", "settle")
		send := p.Member("a").Wire.dial(sender{process: 1}).Resource(services).Namespace("default")
		if err := send.Delete(p.ctx, "debug", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		breaks(t, p, untouched)
	})
}

func TestDeletedOrphanIsSeen(t *testing.T) {
	begun(t, func(p *player) {
		run(t, p, "kill a", "wait 10s", "delete svc/web orphan", "wait 20s", "heal a", "settle")
		send := p.Member("a").Wire.dial(sender{process: 1}).Resource(services).Namespace("default")
		if err := send.Delete(p.ctx, "web", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		breaks(t, p, orphansStay)
	})
}

func TestDeletedUnknownIsSeen(t *testing.T) {
	begun(t, func(p *player) {
		run(t, p, "snapshot fed", "delete rs/web", "apply web.yaml", "settle", "processes 0", "restore fed")
		send := p.Member("a").Wire.dial(sender{process: 1}).Resource(replicaSets).Namespace("default")
		if err := send.Delete(p.ctx, "web", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		breaks(t, p, adopted)
	})
}

func TestACoreThatStandsStillIsSeen(t *testing.T) {
	begun(t, func(p *player) {
		run(t, p, "partition b", "core a")
		p.files["cm.yaml"] = fmt.Sprintf(configMapText, "x", "1")
		run(t, p, "stall fed 1h", "apply cm.yaml") // the federation does not hear of it
		_, err := p.do(strings.Fields("core a"))
		var b *Broken
		if !errors.As(err, &b) || b.Law != "a core lives while the rest is sick" {
			t.Errorf("a ConfigMap is missing, and what was seen is: %v", err)
		}
	})
}

func TestALostClusterThatStaysIsSeen(t *testing.T) {
	begun(t, func(p *player) {
		run(t, p, "kill a", "core b", "heal a", "wait 20m", "stall fed 1h", "kill a")
		_, err := p.do(strings.Fields("core b"))
		var b *Broken
		if !errors.As(err, &b) || b.Law != failedOver {
			t.Errorf("a is lost, and what was seen is: %v", err)
		}
	})
}

// A write that waited may be carried out when nobody is left who could die of it.
func TestCrashWithoutProcesses(t *testing.T) {
	begun(t, func(p *player) {
		run(t, p, "stall fed 1m", "member a delete svc/web", "pods a fail rs/web 1", "wait 5s", "processes 0", "crash 1", "fed well", "wait 1s", "processes 1", "settle")
	})
}

func TestAMissingNameOfAPlaceIsSeen(t *testing.T) {
	begun(t, func(p *player) {
		if broken := p.Check(); len(broken) > 0 {
			t.Fatal(errors.Join(broken...))
		}
		zoneIs(p, func(all []dnsprovider.RRSet) []dnsprovider.RRSet {
			return slices.DeleteFunc(slices.Clone(all), func(r dnsprovider.RRSet) bool { return r.Name == "web.default.fed.svc.b.r."+zone })
		})
		p.fail(errors.Join(p.Check()...))
		breaks(t, p, placesHaveNames)
	})
}
