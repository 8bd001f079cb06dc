package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
	servicednsplan "federation/controllers/servicedns/plan"
	"federation/dnsprovider"
)

// TestObjectsAreCountedAndListed: each is counted once, and listed if it is not as desired everywhere; the longest first, with the reason that ends the
// others: nobody places what is being deleted.
func TestObjectsAreCountedAndListed(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		ago := func() time.Time { return seenAt.Add(-time.Duration(r.IntN(1000)) * time.Second) }
		s, k, want := Status{}, KindStatus{Kind: "Deployment"}, KindStatus{Kind: "Deployment"}
		reasons := map[string]string{}
		for i := range r.IntN(20) {
			o := &metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("o", i), CreationTimestamp: metav1.NewTime(ago()), Annotations: map[string]string{}}
			reason := ""
			switch r.IntN(4) {
			case 0:
				o.Annotations[v1beta1.PlacementAnnotation], reason = v1beta1.PlacementPending, "PlacementPending"
				want.Pending++
			case 1:
				o.Annotations[v1beta1.PlacementAnnotation] = (&v1beta1.Placement{Clusters: map[string]int64{"a": 1}, Unschedulable: int64(i)}).String()
				want.Unschedulable += int64(i)
			}
			c := []*Condition{nil, {Status: "True", Reason: "Done", Since: ago()}, {Status: "False", Reason: "Progressing", Since: ago()}, {Status: "Unknown", Reason: "NoAnswer", Since: ago()}}[r.IntN(4)]
			if c != nil && c.Status != "True" {
				reason = c.Reason
			}
			if r.IntN(4) == 0 {
				o.DeletionTimestamp, reason = new(metav1.NewTime(ago())), "Deleting"
				want.Deleting++
			}
			if want.Objects++; reason != "" {
				want.OutOfSync++
				reasons[o.Name] = reason
			}
			s.Add(&k, o, c)
		}
		s.Summarize()
		if k != want || len(s.OutOfSync) != len(reasons) || s.Healthy != (len(reasons) == 0) {
			t.Fatalf("seed %d: %+v, %d listed, healthy %t; want %+v, %d", seed, k, len(s.OutOfSync), s.Healthy, want, len(reasons))
		}
		for i, o := range s.OutOfSync {
			if i > 0 && o.Since.Before(s.OutOfSync[i-1].Since) || o.Since.IsZero() || o.Reason != reasons[o.Name] {
				t.Fatalf("seed %d: number %d is %+v, want %s", seed, i, o, reasons[o.Name])
			}
			s.Reasons[o.Reason]--
		}
		for reason, left := range s.Reasons {
			if left != 0 {
				t.Fatalf("seed %d: %s is counted wrong by %d", seed, reason, left)
			}
		}
	}
}

// TestOneFaultIsEnough: of a federation that is well each of these makes one that is not.
func TestOneFaultIsEnough(t *testing.T) {
	well := func() *Status {
		return &Status{
			Clusters: []ClusterStatus{{Name: "a", Ready: true, Phase: string(v1beta1.PhaseServing)}, {Name: "b", Ready: true, Phase: string(v1beta1.PhaseServing), OutOfService: "Drained"}},
			Leader:   &Leader{Alive: true}, DNSProviders: []v1beta1.DNSProvider{{Name: "built-in", Published: true}}, LoadBalancers: []v1beta1.RegisteredLoadBalancer{{Name: "lb", Alive: true}},
		}
	}
	s := well()
	if s.Summarize(); !s.Healthy {
		t.Error("nothing is wrong, and it is not healthy")
	}
	for fault, do := range map[string]func(*Status){
		"a cluster is not ready":      func(s *Status) { s.Clusters[1].Ready = false },
		"a cluster is failed over":    func(s *Status) { s.Clusters[0].Phase = string(v1beta1.PhaseFailedOver) },
		"deletions wait":              func(s *Status) { s.Clusters[0].DeletionsPendingApproval = 1 },
		"some do not reach a cluster": func(s *Status) { s.Clusters[0].PartiallyReachable = true },
		"nobody leads":                func(s *Status) { s.Leader.Alive = false },
		"a component failed":          func(s *Status) { s.Components = []v1beta1.FailedComponent{{Component: "dns"}} },
		"a DNS provider is behind":    func(s *Status) { s.DNSProviders[0].Published = false },
		"a load balancer died":        func(s *Status) { s.LoadBalancers[0].Alive = false },
		"a kind cannot be read":       func(s *Status) { s.NotCounted = []string{"Secret"} },
		"an object is not as desired": func(s *Status) { s.Add(&KindStatus{}, &metav1.ObjectMeta{}, &Condition{Status: "False"}) },
		"an object is not placed yet": func(s *Status) {
			s.Add(&KindStatus{}, &metav1.ObjectMeta{Annotations: map[string]string{v1beta1.PlacementAnnotation: v1beta1.PlacementPending}}, nil)
		},
	} {
		s := well()
		do(s)
		if s.Summarize(); s.Healthy {
			t.Errorf("%s, and it is healthy", fault)
		}
	}
}

// TestAClusterSaysWhatIsWrong: each thing that is wrong with it is in its message, and one that is well has none.
func TestAClusterSaysWhatIsWrong(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 2))
		c := clusterAt("a", 0)
		var says []string
		if r.IntN(4) == 0 {
			c = clusterAt("a", time.Minute)
			says = append(says, "cluster is not reachable")
			c.Status.Failover.Message = "waits for its grace period"
			says = append(says, c.Status.Failover.Message)
		}
		because := func(kind v1beta1.ClusterConditionType, message string) {
			if r.IntN(4) == 0 {
				c.Status.Conditions = append(c.Status.Conditions, v1beta1.ClusterCondition{Type: kind, Status: corev1.ConditionTrue, Message: message})
				says = append(says, message)
			}
		}
		because(v1beta1.ClusterDrill, "drill d isolates it")
		because(v1beta1.ClusterPartiallyReachable, "fed-2 does not reach it")
		for copies := range r.IntN(3) {
			c.Status.DeletionsPendingApproval = append(c.Status.DeletionsPendingApproval, v1beta1.PendingDeletions{Copies: int32(3 * copies)})
		}
		pending := int32(0)
		for _, p := range c.Status.DeletionsPendingApproval {
			pending += p.Copies
		}
		if pending > 0 {
			says = append(says, phrase.Count(int64(pending), "deletion"), "approve-deletions a")
		}
		switch r.IntN(5) {
		case 0:
			c.Status.Drain = &v1beta1.ClusterDrainStatus{Message: "DNS provider bind: i/o timeout", Objects: 3}
			says = append(says, "drain: DNS provider bind")
		case 1:
			c.Status.Drain = &v1beta1.ClusterDrainStatus{Objects: 1}
			says = append(says, "drain: waits for 1 object")
		case 2:
			c.Status.Drain = &v1beta1.ClusterDrainStatus{Phase: v1beta1.DrainDrained}
		}
		s := ClusterStatusOf(c)
		for _, part := range says {
			if !strings.Contains(s.Message, part) {
				t.Fatalf("seed %d: %q is not in %q", seed, part, s.Message)
			}
		}
		if !s.Healthy() && s.Message == "" || len(says) == 0 && (s.Message != "" || !s.Healthy()) || s.DeletionsPendingApproval != pending {
			t.Fatalf("seed %d: healthy %t: %+v", seed, s.Healthy(), s)
		}
	}
}

func TestWhatIsFreeInACluster(t *testing.T) {
	c := clusterAt("a", 0)
	c.Spec.Taints = []corev1.Taint{{Key: "a", Value: "b", Effect: corev1.TaintEffectNoSchedule}}
	c.Status.Failover = &v1beta1.ClusterFailover{Phase: v1beta1.PhaseServing, Percent: 100, Message: "came back an hour ago"}
	c.Status.Capacity = &v1beta1.ClusterCapacity{
		Allocatable:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("110")},
		Requested:     corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m"), corev1.ResourcePods: resource.MustParse("10")},
		Unschedulable: []v1beta1.UnschedulablePods{{Name: "web", Pods: 2}, {Name: "api", Pods: 3}},
	}
	before := c.DeepCopy()
	s := ClusterStatusOf(c)
	if got := fmt.Sprint(s.Free, s.Unschedulable, s.Taints, s.Message); got != "map[cpu:2500m memory:8Gi pods:100] 5 [a=b:NoSchedule]" {
		t.Errorf("%s", got)
	}
	if got := c.Status.Capacity.Allocatable; !got.Cpu().Equal(*before.Status.Capacity.Allocatable.Cpu()) {
		t.Errorf("asking changes the Cluster: %v", got)
	}
}

// TestNamesAreAsInThePlan writes each view of names back: what is shown of an object is what the plan has of it, in its order.
func TestNamesAreAsInThePlan(t *testing.T) {
	of := func(key string, n servicednsplan.Name, notes []servicednsplan.Reason) (text string) {
		text = fmt.Sprintln(key, n.Name, n.Level)
		for _, set := range n.Records {
			text += fmt.Sprintln(set.Type, set.TTL, set.Rdata)
			for _, v := range set.Variants {
				text += fmt.Sprintln(v.Weight, v.Region, v.Rdata)
			}
		}
		for _, c := range n.Clusters {
			text += fmt.Sprintln(c.Cluster, c.Given, c.Why)
		}
		for _, note := range notes {
			text += fmt.Sprintln(note.Cluster, note.Message)
		}
		return text
	}
	e := acrossEvidenceOf(t, clusterAt("a", 0), clusterAt("b", 0))
	web := e.Across.World.Objects[0]
	api, silent := web, web
	api.Name, silent.Name = "api", "silent"
	in := e.Across.World
	in.Objects = []servicednsplan.Object{web, silent, api}
	p := servicednsplan.Records(in)
	p.Names = slices.DeleteFunc(p.Names, func(n servicednsplan.Name) bool { return n.Object == silent.Key() })
	p.Reasons = []servicednsplan.Reason{{Object: api.Key(), Cluster: "a", Message: "its nodes have no region"}, {Object: api.Key(), Message: "of the whole"}, {Object: "Service other/other", Message: "of another"}}
	p.Names[0].Records = append(p.Names[0].Records, dnsprovider.RRSet{Type: dnsprovider.A, TTL: 7, Variants: []dnsprovider.Variant{{Weight: 3, Region: "east", Rdata: []string{"192.0.2.1"}}}})
	for shown, count := range map[string]int{"": 2, "web": 1, "silent": 0} {
		show := func(o servicednsplan.Object) bool { return shown == "" || o.Name == shown }
		view, got, want := ViewNames(in, p, show), "", ""
		for _, o := range []servicednsplan.Object{web, silent, api} {
			for _, n := range p.Names {
				if n.Object == o.Key() && show(o) {
					want += of(o.Name, n, nil)
				}
			}
			if o.Name == api.Name && show(o) {
				want += of(o.Name, servicednsplan.Name{}, p.Reasons[:2])
			}
		}
		for _, o := range view.Objects {
			for _, n := range o.Names {
				back := servicednsplan.Name{Name: n.Name, Level: servicednsplan.Level(n.Level)}
				for _, a := range n.Answers {
					set := dnsprovider.RRSet{Type: dnsprovider.Type(a.Type), TTL: a.TTLSeconds, Rdata: a.Data}
					for _, v := range a.OneOf {
						set.Variants = append(set.Variants, dnsprovider.Variant{Weight: v.Weight, Region: v.Region, Rdata: v.Data})
					}
					back.Records = append(back.Records, set)
				}
				for _, c := range n.Clusters {
					back.Clusters = append(back.Clusters, servicednsplan.Standing{Cluster: c.Name, Given: c.Given, Why: c.Why})
				}
				got += of(o.Name, back, nil)
			}
			var notes []servicednsplan.Reason
			for _, n := range o.Notes {
				notes = append(notes, servicednsplan.Reason{Cluster: n.Cluster, Message: n.Message})
			}
			if len(notes) > 0 {
				got += of(o.Name, servicednsplan.Name{}, notes)
			}
		}
		if got != want || len(view.Objects) != count || view.Zone != in.Zone {
			t.Errorf("shown %q: %d objects, want %d:\n%s\nwant\n%s", shown, len(view.Objects), count, got, want)
		}
	}
}

// TestPodsAreUsedOrItIsSaidWhyNot, for each state of a cluster.
func TestPodsAreUsedOrItIsSaidWhyNot(t *testing.T) {
	for state := range 1 << 5 {
		is := func(bit int) bool { return state>>bit&1 == 1 }
		c := servicednsplan.Cluster{Name: "a", Ready: is(0), HeartbeatsStale: is(1), FailedOver: is(2), CutOff: is(3)}
		if is(4) {
			c.Weight = 100
		}
		seen := c.CutOff || c.Ready && !c.HeartbeatsStale
		why := podStanding(servicednsplan.OffersOfPods([]servicednsplan.Cluster{c}, nil)[0])
		if used := seen && c.Weight > 0 && (c.CutOff || !c.FailedOver); used != (why == "") {
			t.Errorf("%+v: used %t, and %q", c, used, why)
		}
		for part, holds := range map[string]bool{"not ready": !seen, "weight is 0": c.Weight == 0, "failed over": c.FailedOver} {
			if strings.Contains(why, part) && !holds {
				t.Errorf("%+v: %q", c, why)
			}
		}
	}
}

// TestStatesOfReplicas compares with what each state means, for all small numbers.
func TestStatesOfReplicas(t *testing.T) {
	for n := range 3 * 3 * 4 * 2 * 2 {
		wanted, there, ready, late, deleted := int64(n%3), int64(n/3%3), int64(n/9%4), n/36%2 == 1, n/72 == 1
		e := evidenceOf(replicaSet(t, 2, &v1beta1.Placement{Clusters: map[string]int64{"a": wanted, "b": 2 - wanted}}), replicaSets, clusterAt("a", 0), clusterAt("b", 0))
		u := e.desiredNow(e.Clusters[0]).Object.DeepCopy()
		u.SetGeneration(2)
		u.Object["status"] = map[string]any{"readyReplicas": ready, "observedGeneration": int64(2)}
		if late {
			u.Object["status"].(map[string]any)["observedGeneration"] = int64(1)
		}
		_ = unstructured.SetNestedField(u.Object, there, "spec", "replicas")
		e.Copies["a"] = CopyAnswer{Copy: u}
		if deleted {
			e.Object.SetDeletionTimestamp(new(metav1.NewTime(seenAt)))
			wanted = 0
		}
		c := Explain(e).Clusters[0]
		state, waits := v1beta1.CopyInSync, v1beta1.WaitReason("")
		switch {
		case wanted == 0 && there > 0:
			state = v1beta1.CopyLeaving
		case there != wanted:
			state = v1beta1.CopyProgressing
		}
		switch {
		case late:
			waits = v1beta1.WaitsForControllers
		case state != v1beta1.CopyLeaving && ready < min(there, wanted):
			waits = v1beta1.WaitsForReplicas
		}
		if c.Copy != state || c.WaitReason != waits || c.Desired != wanted || *c.Current != there || c.Ready != ready {
			t.Errorf("wanted %d, there %d, ready %d, late %t, deleted %t: %s, %q; want %s, %q; %+v", wanted, there, ready, late, deleted, c.Copy, c.WaitReason, state, waits, c)
		}
	}
}

// TestWhoMayNotListClustersSeesNoOthers: the explanation for somebody who may not list clusters is the same, whatever clusters that have nothing of the object are
// called, whether they are well, and what they or their members answer.
func TestWhoMayNotListClustersSeesNoOthers(t *testing.T) {
	for name, evidence := range map[string]func(other *v1beta1.Cluster) Evidence{
		"a ReplicaSet": func(other *v1beta1.Cluster) Evidence {
			e := moving(t)
			e.Clusters[3] = other
			return e
		},
		"a Service": func(other *v1beta1.Cluster) Evidence {
			e := acrossEvidenceOf(t, clusterAt("a", 0), clusterAt("b", 0))
			e.Object.SetAnnotations(map[string]string{v1beta1.PlacementAnnotation: `{"clusters":{"a":1,"b":1}}`, v1beta1.ServiceIngressesAnnotation: e.Object.GetAnnotations()[v1beta1.ServiceIngressesAnnotation]})
			e.Clusters = append(e.Clusters, other)
			e.Across.World.Clusters = append(e.Across.World.Clusters, servicednsplan.ClusterOf(other, nil))
			e.Across.Slices[other.Name] = SlicesAnswer{Err: errors.New(other.Name)}
			e.Across.Slices["a"] = SlicesAnswer{Err: errors.New("dial tcp " + other.Spec.ServerAddressByClientCIDRs[0].ServerAddress)} // how a itself is reached is not disclosed, either
			return e
		},
		"an Ingress": func(other *v1beta1.Cluster) Evidence {
			e := frontEvidence(t)
			e.Object.SetAnnotations(map[string]string{v1beta1.PlacementAnnotation: `{"clusters":{"east-a":1,"east-b":1,"west-a":1,"west-b":1}}`})
			e.Clusters[5] = other
			e.Routes.Names.Clusters[5] = servicednsplan.ClusterOf(other, nil)
			return e
		},
	} {
		var first string
		for i, other := range []*v1beta1.Cluster{clusterAt("other-1", 0), clusterAt("other-2", time.Hour), clusterAt("other-3", 0)} {
			if other.Spec.ServerAddressByClientCIDRs = []v1beta1.ServerAddressByClientCIDR{{ServerAddress: other.Name + ":6443"}}; i == 2 {
				other.Status.Region, other.Spec.DNSWeight = "west", new(int32)
			}
			e := evidence(other)
			if e.Copies[other.Name] = (CopyAnswer{}); !other.IsReady() {
				e.Copies[other.Name] = CopyAnswer{Err: errors.New(other.Name + " gives no answer")}
			}
			if open, _ := json.Marshal(Explain(e)); !strings.Contains(string(open), other.Name) {
				t.Errorf("%s: the explanation for who may list clusters lacks %s", name, other.Name)
			}
			e.Confined = true
			text, err := json.Marshal(Explain(e))
			if err != nil || strings.Contains(string(text), other.Name) || i > 0 && string(text) != first {
				t.Errorf("%s: with the cluster %s, %v:\n%s\nand before\n%s", name, other.Name, err, text, first)
			}
			first = string(text)
		}
	}
}
