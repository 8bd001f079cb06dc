package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestOffers(t *testing.T) {
	clusters := threeClusters()
	clusters[1].Weight = 0
	clusters = append(clusters, Cluster{Name: "dead", Weight: 100}, Cluster{Name: "held", Weight: 100, CutOff: true}, Cluster{Name: "wide", Ready: true, Weight: 5, Zones: []string{"a", "b"}, Region: "east"},
		Cluster{Name: "back", Weight: 100, Ready: true, FailedOver: true}, Cluster{Name: "mute", Weight: 100, Ready: true, HeartbeatsStale: true})
	checked := with(service("east-a=192.0.2.1,192.0.2.1", "west-a=192.0.2.2", "wide=192.0.2.3"), `{"healthCheck":{"type":"TCP","port":80}}`)
	unreported := Object{Kind: KindService, Namespace: "default", Name: "web", Type: corev1.ServiceTypeLoadBalancer}
	for name, c := range map[string]struct {
		object Object
		want   []string
	}{
		"ranks": {service("back=192.0.2.10", "dead=192.0.2.4", "east-a=192.0.2.1,2001:db8::1", "east-b=192.0.2.2", "held=192.0.2.5", "mute=192.0.2.8", "west-a", "wide=192.0.2.6", "gone=192.0.2.9"), []string{
			"back   weight 100 rank 1 [192.0.2.10] false", "dead   weight 100 rank 3 [192.0.2.4] false", "east-a east a weight 100 rank 0 [192.0.2.1 2001:db8::1] false", "east-b east b weight 0 rank 1 [192.0.2.2] false",
			"held   weight 100 rank 0 [192.0.2.5] false", "mute   weight 100 rank 3 [192.0.2.8] false", "wide east  weight 5 rank 0 [192.0.2.6] false"}},
		"host names": {service("east-a=one.lb.test,192.0.2.1", "wide=two.lb.test"), []string{
			"east-a east a weight 100 rank 0 [192.0.2.1 192.0.2.7] false", "wide east  weight 5 rank 0 [] true"}},
		"checked": {checked, []string{
			"east-a east a weight 100 rank 2 [192.0.2.1] false", "west-a west a weight 100 rank 0 [192.0.2.2] false", "wide east  weight 5 rank 0 [192.0.2.3] false"}},
		"not reported yet": {unreported, []string{
			"back   weight 100 rank 1 [] false unknown", "dead   weight 100 rank 3 [] false unknown", "east-a east a weight 100 rank 0 [] false unknown", "east-b east b weight 0 rank 1 [] false unknown",
			"held   weight 100 rank 0 [] false unknown", "mute   weight 100 rank 3 [] false unknown", "west-a west a weight 100 rank 0 [] false unknown", "wide east  weight 5 rank 0 [] false unknown"}},
		"reported, nothing is there": {Object{Kind: KindService, Namespace: "default", Name: "web", Type: corev1.ServiceTypeLoadBalancer, Reported: true}, nil},
		"two have never been seen": {service("dead=never", "held=never", "wide=192.0.2.6"), []string{
			"dead   weight 100 rank 3 [] false unknown", "held   weight 100 rank 0 [] false unknown", "wide east  weight 5 rank 0 [192.0.2.6] false"}},
		"of an Ingress none":  {named(service("east-a=192.0.2.1"), KindIngress, "web", 1), nil},
		"the object's weight": {with(service("wide=192.0.2.6"), `{"strategy":"Weighted","clusters":{"wide":{"weight":7}}}`), []string{"wide east  weight 7 rank 0 [192.0.2.6] false"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(clusters, c.object)
			if c.object.Kind == KindService && c.object.Ingresses == nil {
				in = elsewhere(clusters, c.object)
			}
			in.Offers = true
			in.Resolved = map[string][]netip.Addr{"one.lb.test.": {netip.MustParseAddr("::ffff:192.0.2.7")}}
			in.Failing = map[string]Failure{}
			for _, target := range Records(in).Targets {
				if target.Address == "192.0.2.1" {
					in.Failing[target.Key()] = Failure{Target: target.Key(), Since: time.Unix(0, 0), Why: "refused"}
				}
			}
			var got []string
			p := Records(in)
			for _, o := range p.Offers {
				got = append(got, fmt.Sprintf("%s %s %s weight %d rank %d %s %v", o.Cluster, o.Region, o.Zone, o.Weight, o.Rank, o.Addresses, o.Unresolved)+map[bool]string{true: " unknown"}[o.Unknown])
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%q, want\n%q", got, c.want)
			}
			if name == "host names" && !slices.Equal(p.Resolve, []string{"one.lb.test.", "two.lb.test."}) {
				t.Errorf("to be resolved: %q", p.Resolve)
			}
			if in.Offers = false; len(Records(in).Offers) > 0 {
				t.Error("offers that nobody asked for")
			}
		})
	}
}
