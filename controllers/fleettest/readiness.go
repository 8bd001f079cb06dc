package fleettest

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/readiness/plan"
	reviewplan "federation/controllers/review/plan"
	servicednsplan "federation/controllers/servicedns/plan"
	placement "federation/scheduler"
)

// infoOf says how the fleet's federation is set up.
func infoOf(f *Fleet) v1beta1.Info {
	return v1beta1.Info{Name: "fed", DNSZone: zone, DNSTTL: 15 * time.Second, FailoverMaxZones: f.Settings.failover().MaxZones, FailoverWindow: f.Settings.failover().Window}
}

// readinessOf reads what is written of a zone or region; nil where nothing is.
func readinessOf(f *Fleet, name string) *v1beta1.FailoverReadiness {
	u := f.Federation.Get(v1beta1.ReadinessResource, "", name)
	if u == nil {
		return nil
	}
	r := &v1beta1.FailoverReadiness{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, r); err != nil {
		panic(err) // the API stores none that cannot be read
	}
	return r
}

// checkReadiness: what is written of each zone and region is what a review says that is asked now, of all there is. Acceptance test 30 of drills.
func checkReadiness(f *Fleet, law lawFunc) {
	const name = "readiness is what a review says"
	if !f.readiness.Load() || len(f.processes.running) == 0 {
		return
	}
	f.tally.check(name)
	clusters := all[v1beta1.Cluster](f, v1beta1.ClustersResource)
	fleet, now := reviewed(f, clusters), time.Now()
	domains := plan.Domains(clusters, []plan.Level{plan.Zone, plan.Region})
	if n := len(f.Federation.List(v1beta1.ReadinessResource, nil)); n != len(domains) {
		law(name, "%d are written, and there are %d zones and regions", n, len(domains))
	}
	for _, d := range domains {
		loss := fleet.Lose(d.Clusters, now)
		want := plan.Status(&v1beta1.FailoverReadinessStatus{}, &loss, now, 0)
		is := readinessOf(f, d.Name)
		if is != nil && is.Status.LastDrill != nil { // which no review says
			want.LastDrill = is.Status.LastDrill
			meta.SetStatusCondition(&want.Conditions, plan.Drilled(want.LastDrill, metav1.NewTime(now)))
		}
		switch {
		case is == nil:
			law(name, "nothing is written of %s", d.Name)
		case !plan.Same(&is.Status, &want):
			law(name, "of %s is written\n%s\nand a review says\n%s", d.Name, inLines(&is.Status), inLines(&want))
		}
	}
}

// reviewed has all there is, taken in anew.
func reviewed(f *Fleet, clusters []*v1beta1.Cluster) *reviewplan.Fleet {
	policies := all[v1beta1.PlacementPolicy](f, v1beta1.PoliciesResource)
	out := reviewplan.NewFleet(infoOf(f), f.Settings.failover())
	out.SetWorld(clusters, policies)
	for _, k := range v1beta1.FederatedKinds {
		if k.Preferences == "" {
			continue
		}
		for _, u := range f.Federation.List(k.Resource, nil) {
			if o, err := placement.Read(u); err == nil && u.GetDeletionTimestamp() == nil {
				out.Set(o)
			}
		}
	}
	for _, r := range []schema.GroupVersionResource{corev1.SchemeGroupVersion.WithResource("services"), networkingv1.SchemeGroupVersion.WithResource("ingresses")} {
		for _, u := range f.Federation.List(r, nil) {
			if o, err := servicednsplan.Read(u, inNamespace(policies, u)); err == nil {
				out.SetNamed(o)
			}
		}
	}
	return out
}

func inNamespace(policies []*v1beta1.PlacementPolicy, u *unstructured.Unstructured) (some []*v1beta1.PlacementPolicy) {
	for _, p := range policies {
		if p.Namespace == u.GetNamespace() {
			some = append(some, p)
		}
	}
	return some
}

// all reads the objects of one of our own kinds.
func all[T any](f *Fleet, r schema.GroupVersionResource) (out []*T) {
	for _, u := range f.Federation.List(r, nil) {
		o := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o); err != nil {
			panic(err) // the API stores none that cannot be read
		}
		out = append(out, o)
	}
	return out
}

// inLines is what a status says, for people.
func inLines(s *v1beta1.FailoverReadinessStatus) string {
	v := plan.Verdict(s)
	out := fmt.Sprintf("%s %s: %s", v.Status, v.Reason, v.Message)
	out += fmt.Sprintf("\n  %d clusters, %d objects, %d replicas: %d placed, %d kept, %d unschedulable", s.Clusters, s.Objects, s.Replicas, s.Placed, s.Kept, s.Unschedulable)
	if s.Names != nil {
		out += fmt.Sprintf("; %d of %d names", s.Names.Survive, s.Names.Served)
	}
	if h := s.Headroom; h != nil {
		out += fmt.Sprintf("; %d%% %s left, least in %s", h.Percent, h.Resource, h.Cluster)
	}
	for _, o := range s.Worst {
		out += fmt.Sprintf("\n  %s %s/%s: %d replicas, %d unschedulable", o.Kind, o.Namespace, o.Name, o.Replicas, o.Unschedulable)
	}
	return out
}

// showReadiness carries out show readiness NAME…: what is written of zones and regions.
func showReadiness(p *player, args []string) (out []string, err error) {
	if err := need(args, 1, "show readiness NAME…"); err != nil {
		return nil, err
	}
	for _, name := range args {
		r := readinessOf(p.Fleet, name)
		if r == nil {
			out = append(out, name+": nothing")
			continue
		}
		out = append(out, strings.Split(name+": "+inLines(&r.Status), "\n")...)
	}
	return out, nil
}
