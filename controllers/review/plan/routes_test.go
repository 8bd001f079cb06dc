package plan

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
	servicednsplan "federation/controllers/servicedns/plan"
)

// routed returns an Ingress of class federation in the namespace default, with a rule for each "HOST PATH SERVICE".
func routed(name string, rules ...string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "networking.k8s.io/v1", "kind": "Ingress"}}
	u.SetNamespace("default")
	u.SetName(name)
	var all []any
	for _, rule := range rules {
		f := strings.Fields(rule)
		backend := map[string]any{"service": map[string]any{"name": f[2], "port": map[string]any{"number": int64(80)}}}
		all = append(all, map[string]any{"host": f[0], "http": map[string]any{"paths": []any{map[string]any{"path": f[1], "pathType": "Prefix", "backend": backend}}}})
	}
	u.Object["spec"] = map[string]any{"ingressClassName": v1beta1.IngressClassName, "rules": all}
	return u
}

// served returns a Service of port 80 with a load balancer in each of the clusters.
func served(name string, clusters ...string) *unstructured.Unstructured {
	var items []string
	for i, c := range clusters {
		items = append(items, fmt.Sprintf(`{"cluster":%q,"items":[{"ip":"192.0.2.%d"}]}`, c, i+1))
	}
	u := service(name, `{"items":[`+strings.Join(items, ",")+`]}`)
	u.Object["spec"] = map[string]any{"type": "LoadBalancer", "ports": []any{map[string]any{"port": int64(80)}}}
	return u
}

// TestWhatALossDoesToRoutes: which hosts would have no cluster left, and which load balancers stand where the loss is.
func TestWhatALossDoesToRoutes(t *testing.T) {
	clusters := three(-1)
	drained := member("west-b", "west/b", -1)
	drained.Spec.DNSWeight = new(int32)
	clusters = append(clusters, drained)
	in := input(t, clusters)
	for _, u := range []*unstructured.Unstructured{
		routed("front", "www.test / everywhere", "www.test /a one", "b.test / spare", "c.test / gone", "d.test / none"), routed("other", "www.test /x east"),
		served("everywhere", "east-a", "east-b", "west-a"), served("one", "east-a"), served("spare", "east-a", "west-b"), served("east", "east-a", "east-b"), served("gone"), served("unused", "east-a"),
	} {
		in.AddNamed(u)
		in.AddRouted(u)
	}
	for name, says := range map[string]string{"east-1": `"region":"east","zone":"a"`, "east-2": `"region":"east"`, "west-1": `"region":"west","zone":"a"`, "none": `"region":""`} {
		b, err := servicednsplan.ParseLoadBalancer(name, `{`+says+`,"addresses":["192.0.2.80"]}`)
		if err != nil {
			t.Fatal(err)
		}
		in.LoadBalancers = append(in.LoadBalancers, b)
	}
	for name, c := range map[string]struct {
		spec             v1beta1.FailoverReviewSpec
		routes, balancer string
	}{
		"a cluster":                      {v1beta1.FailoverReviewSpec{Clusters: []string{"east-a"}}, "www.test/a by one", ""},
		"a zone of a region":             {v1beta1.FailoverReviewSpec{Zones: []string{"east/a"}}, "www.test/a by one", "east-1, 3 left"},
		"zones of all regions":           {v1beta1.FailoverReviewSpec{Zones: []string{"a"}}, "www.test/a by one", "east-1 west-1, 2 left"},
		"a region":                       {v1beta1.FailoverReviewSpec{Regions: []string{"east"}}, "www.test/a by one, www.test/x by east", "east-1 east-2, 2 left"},
		"what stands by is lost as well": {v1beta1.FailoverReviewSpec{Clusters: []string{"east-a", "west-b"}}, "b.test/ by spare, www.test/a by one", ""},
		"all":                            {v1beta1.FailoverReviewSpec{Regions: []string{"east", "west"}}, "b.test/ by spare, www.test/ by everywhere, www.test/a by one, www.test/x by east", "east-1 east-2 west-1, 1 left"},
		"a drain":                        {v1beta1.FailoverReviewSpec{Zones: []string{"east/a"}, Drained: true}, "", ""},
	} {
		s, errs := Review(in, c.spec)
		if len(errs) > 0 {
			t.Fatal(name, errs)
		}
		var routes, balancers []string
		for _, r := range s.Routes {
			routes = append(routes, r.Host+r.Path+" by "+r.Service)
		}
		for _, b := range s.LoadBalancers {
			if balancers = append(balancers, b.Name); fmt.Sprint(b.Addresses) != "[192.0.2.80]" {
				t.Errorf("%s: addresses %v", name, b.Addresses)
			}
		}
		got := strings.Join(balancers, " ")
		if s.LoadBalancersLeft != nil {
			got += fmt.Sprintf(", %d left", *s.LoadBalancersLeft)
		}
		if r := strings.Join(routes, ", "); r != c.routes || got != c.balancer {
			t.Errorf("%s: routes %q, want %q; load balancers %q, want %q", name, r, c.routes, got, c.balancer)
		}
	}
}
