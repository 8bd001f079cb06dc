package main

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
	explainplan "federation/controllers/explain/plan"
	"federation/controllers/servicedns/plan"
)

// dnsExample has a weighted Service in three clusters, one of them without an endpoint, and two Ingresses that claim
// one host.
func dnsExample() plan.Input {
	at := func(addresses ...string) *v1beta1.ServiceIngresses {
		in := &v1beta1.ServiceIngresses{}
		for i, address := range addresses {
			item := v1beta1.ClusterServiceIngress{Cluster: []string{"east-a", "east-b", "west-a"}[i]}
			if address != "" {
				item.Items = []corev1.LoadBalancerIngress{{IP: address}}
			}
			in.Items = append(in.Items, item)
		}
		return in
	}
	return plan.Input{
		Federation: "prod", Zone: "example.com.", TTL: 15, Explain: true,
		Clusters: []plan.Cluster{
			{Name: "east-a", Ready: true, Weight: 100, Zones: []string{"a"}, Region: "east"}, {Name: "east-b", Ready: true, Weight: 300, Zones: []string{"b"}, Region: "east"},
			{Name: "west-a", Ready: true, Weight: 100, Zones: []string{"a"}, Region: "west"},
		},
		Objects: []plan.Object{
			{Kind: plan.KindService, Namespace: "shop", Name: "web", Type: corev1.ServiceTypeLoadBalancer, Ingresses: at("192.0.2.1", "192.0.2.2", ""), Settings: &v1beta1.DNSSettings{Strategy: v1beta1.DNSWeighted}},
			{Kind: plan.KindIngress, Namespace: "shop", Name: "front", Hosts: []string{"shop.example.com"}, Ingresses: at("198.51.100.1", "198.51.100.2")},
			{Kind: plan.KindIngress, Namespace: "shop", Name: "late", Hosts: []string{"shop.example.com"}, Ingresses: at("198.51.100.1")},
		},
	}
}

func TestDNSOnAScreen(t *testing.T) {
	in := dnsExample()
	view := explainplan.ViewNames(in, plan.Records(in), func(plan.Object) bool { return true })
	var out strings.Builder
	printDNS(&out, view, seenAt)
	golden(t, "testdata/dns.table", out.String())
	out.Reset()
	o := output("json")
	if err := o.print(&out, explainplan.ViewNames(in, plan.Records(in), func(o plan.Object) bool { return o.Kind == plan.KindIngress })); err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/dns.json", out.String())
}

// A cluster that fails its check is out, with the reason.
func TestDNSSaysWhichCheckFails(t *testing.T) {
	in := dnsExample()
	in.Objects[0].Settings.HealthCheck = &v1beta1.DNSHealthCheck{Type: v1beta1.DNSHealthCheckHTTP, Path: "/healthz"}
	target := plan.Target{Namespace: "shop", Address: "192.0.2.2", Check: in.Objects[0].Settings.HealthCheck.WithDefaults()}
	in.Failing = map[string]plan.Failure{target.Key(): {Target: target.Key(), Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Why: "status 503"}}
	var out strings.Builder
	printDNS(&out, explainplan.ViewNames(in, plan.Records(in), func(o plan.Object) bool { return o.Name == "web" }), seenAt)
	if want := "      east-b  it fails the check HTTP 192.0.2.2:80/healthz from the federation since 2026-01-02T03:04:05Z (status 503): its addresses are out\n"; !strings.Contains(out.String(), want) {
		t.Errorf("%s\nwant %q", out.String(), want)
	}
}

func TestDNSOfWhat(t *testing.T) {
	for arg, want := range map[string]string{"web": "Service web", "svc/web": "Service web", "ingress/front": "Ingress front", "ing/front": "Ingress front"} {
		if got, err := dnsKey([]string{arg}); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", arg, got, err, want)
		}
	}
	for _, arg := range []string{"pod/web", "svc/", "svc/a/b"} {
		if _, err := dnsKey([]string{arg}); err == nil || !strings.Contains(err.Error(), arg) {
			t.Errorf("%s: error %v", arg, err)
		}
	}
}
