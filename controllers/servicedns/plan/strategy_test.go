package plan

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"federation/apiserver/apis/federation/v1beta1"
)

func settings(text string) *v1beta1.DNSSettings {
	s, errs := v1beta1.ParseDNSSettings(text, field.NewPath("dns"))
	if len(errs) > 0 {
		panic(errs)
	}
	return s
}

func with(o Object, text string) Object {
	o.Settings = settings(text)
	return o
}

func named(o Object, kind, name string, day int) Object {
	o.Kind, o.Name, o.Created = kind, name, time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC)
	return o
}

// explained formats a plan for reading: each name, its answers, and each cluster's standing.
func explained(p Plan) string {
	var b strings.Builder
	for _, n := range p.Names {
		fmt.Fprintf(&b, "%s %s (%s)\n", n.Object, n.Name, n.Level)
		for _, set := range n.Records {
			for line := range strings.Lines(set.String()) {
				fmt.Fprintf(&b, "  %s\n", strings.TrimPrefix(strings.TrimSuffix(line, "\n"), n.Name+" "))
			}
		}
		for _, c := range n.Clusters {
			mark := " "
			if c.Given {
				mark = "*"
			}
			fmt.Fprintf(&b, "  %s %s: %s\n", mark, c.Cluster, c.Why)
		}
	}
	for _, r := range p.Reasons {
		fmt.Fprintf(&b, "; %s\n", r)
	}
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/" + name + ".golden"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Errorf("%v; got\n%s\nwant\n%s\nif it is right, run the test with -update", err, got, want)
	}
}

// Each strategy has a golden file with every name and each cluster's part in it.
func TestStrategies(t *testing.T) {
	three := service("east-a=192.0.2.1,2001:db8::1", "east-b=192.0.2.2", "west-a=192.0.2.3")
	for name, o := range map[string]Object{
		"weighted": with(three, `{"strategy":"Weighted","ttlSeconds":30,"clusters":{"east-a":{"weight":300},"west-a":{"weight":0}}}`),
		"failover": with(three, `{"strategy":"Failover","clusters":{"east-a":{"priority":2},"east-b":{"priority":1},"*":{"priority":1}}}`),
		"nearest":  with(three, `{"strategy":"Nearest"}`),
	} {
		t.Run(name, func(t *testing.T) {
			in := input(threeClusters(), o)
			in.Explain = true
			golden(t, name, explained(Records(in)))
		})
	}
}

func TestFailoverGoesToTheNextPriority(t *testing.T) {
	clusters := threeClusters()
	clusters[0].Ready = false
	o := with(service("east-a=192.0.2.1", "west-a=192.0.2.3"), `{"strategy":"Failover","clusters":{"*":{"priority":1},"east-a":{}}}`)
	check(t, Records(input(threeClusters(), o)), []string{"@ A 192.0.2.1", "a.east A 192.0.2.1", "a.west A 192.0.2.3", "east A 192.0.2.1", "west A 192.0.2.3"}, nil)
	check(t, Records(input(clusters, o)), []string{"@ A 192.0.2.3", "a.east CNAME east", "a.west A 192.0.2.3", "east CNAME @", "west A 192.0.2.3"},
		[]string{"east-a: the cluster is not ready"})
}

func TestHosts(t *testing.T) {
	ingress := named(service("east-a=192.0.2.1", "west-a=192.0.2.3"), KindIngress, "shop", 2)
	ingress.Hosts = []string{"shop.example.com", "Shop.example.com", "*.example.com", "shop.example.org", "ns.example.com", "web.default.fed.svc.example.com"}
	later := named(service("east-b=192.0.2.2"), KindIngress, "late", 3)
	later.Hosts = []string{"shop.example.com", "late.example.com"}
	extra := named(with(service("east-a=one.lb.test"), `{"hosts":["late.example.com","example.com","www.example.com"]}`), KindService, "web", 1)
	in := input(threeClusters(), ingress, later, extra)
	in.Explain = true
	golden(t, "hosts", explained(Records(in)))
}

// Claims changed one by one equal those made at once, and report the affected objects.
func TestClaimsFollow(t *testing.T) {
	a, b := named(service("east-a=192.0.2.1"), KindIngress, "a", 2), named(service("east-a=192.0.2.1"), KindIngress, "b", 1)
	a.Hosts, b.Hosts = []string{"shop.example.com"}, []string{"shop.example.com"}
	c := NewClaims(Zone{Federation: "fed", Name: zone})
	if others := c.Set(&a); len(others) > 0 || c.ownerOf("shop.example.com.") != a.Key() {
		t.Errorf("alone: %q, owner %q", others, c.ownerOf("shop.example.com."))
	}
	if others := c.Set(&b); len(others) != 1 || others[0] != a.Key() || c.ownerOf("shop.example.com.") != b.Key() {
		t.Errorf("an older one comes: %q, owner %q", others, c.ownerOf("shop.example.com."))
	}
	if others := c.Drop(b.Key()); len(others) != 1 || others[0] != a.Key() || c.ownerOf("shop.example.com.") != a.Key() {
		t.Errorf("it goes: %q, owner %q", others, c.ownerOf("shop.example.com."))
	}
	if c.Drop(a.Key()); len(c.claims) > 0 || len(c.hosts) > 0 {
		t.Errorf("left: %v", c)
	}
}

func TestReadObject(t *testing.T) {
	read := func(text string) (Object, error) {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		policy := func(name string, priority int32, ttl int32) *v1beta1.PlacementPolicy {
			p := &v1beta1.PlacementPolicy{}
			p.Name, p.Spec.Priority, p.Spec.DNS = name, priority, &v1beta1.DNSSettings{TTLSeconds: &ttl}
			p.Spec.ResourceSelectors = []v1beta1.ResourceSelector{{APIVersion: "networking.k8s.io/v1", Kind: "Ingress"}}
			return p
		}
		return Read(u, []*v1beta1.PlacementPolicy{policy("a", 0, 1), policy("c", 1, 3), policy("b", 1, 2)})
	}
	const ingress = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  namespace: shop
  name: front
  annotations: {federation.kubernetes.io/service-ingresses: '{"items":[{"cluster":"a","items":[{"ip":"192.0.2.1"}]}]}'%s}
spec: {rules: [{host: shop.example.com}, {http: {}}]}`
	o, err := read(fmt.Sprintf(ingress, ""))
	if err != nil || o.Key() != "Ingress shop/front" || len(o.Hosts) != 1 || len(o.Ingresses.Items) != 1 || *o.Settings.TTLSeconds != 2 {
		t.Errorf("%+v, %v: want the settings of the policy that governs, b", o, err)
	}
	o, err = read(fmt.Sprintf(ingress, `, federation.kubernetes.io/dns: '{"strategy":"Nearest"}'`))
	if err != nil || o.Settings.Strategy != v1beta1.DNSNearest || o.Settings.TTLSeconds != nil {
		t.Errorf("%+v, %v: want those of the annotation", o.Settings, err)
	}
	if _, err = read(fmt.Sprintf(ingress, `, federation.kubernetes.io/dns: '{"strategy":"Best"}'`)); err == nil || !strings.Contains(err.Error(), "federation.kubernetes.io/dns].strategy") {
		t.Errorf("error %v, want one that names the strategy", err)
	}
}
