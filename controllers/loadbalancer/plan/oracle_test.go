package plan

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"

	"federation/apiserver/apis/federation/v1beta1"
	servicednsplan "federation/controllers/servicedns/plan"
)

// TestSharesAgainstAReference: DecidePool divides as a slow reading of its words does, for pools of one address a cluster.
func TestSharesAgainstAReference(t *testing.T) {
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 5))
		in := randomPool(r)
		for i := range in.Offers {
			in.Offers[i].Addresses = in.Offers[i].Addresses[:min(1, len(in.Offers[i].Addresses))]
		}
		want := slowShares(in)
		for _, part := range DecidePool(in).Parts {
			if math.Abs(part.Share-want[part.Cluster]) > 1e-9 {
				t.Fatalf("seed %d: %s has %v, the reference says %v", seed, part.Target, part.Share, want[part.Cluster])
			}
		}
	}
}

// slowShares divides among clusters of one address each.
func slowShares(in PoolInput) map[string]float64 {
	reach := slowReach(in)
	var best []servicednsplan.Offer
	for rank := range 5 {
		for _, o := range in.Offers {
			if o.Rank == rank && reach[o.Cluster] > 0 {
				best = append(best, o)
			}
		}
		if len(best) > 0 {
			break
		}
	}
	percent := 100.0
	if text := in.Service.Annotations[v1beta1.FallbackBelowAnnotation]; text != "" {
		percent = 0
		for _, digit := range strings.TrimSuffix(text, "%") {
			percent = 10*percent + float64(digit-'0')
		}
	}
	near := func(o servicednsplan.Offer) bool { return o.Region == in.Site.Region }
	capacity := func(own bool) float64 {
		has, whole := 0.0, 0.0
		for _, o := range in.Offers {
			if near(o) != own || len(o.Addresses) == 0 {
				continue
			}
			used := slices.ContainsFunc(best, func(b servicednsplan.Offer) bool { return b.Cluster == o.Cluster })
			if used {
				has += float64(o.Weight) * reach[o.Cluster]
			}
			if used || o.Rank != rankDrained {
				whole += float64(o.Weight)
			}
		}
		if whole == 0 {
			return 0
		}
		return min(1, has/whole*100/percent)
	}
	own := capacity(true)
	other := min(1-own, capacity(false))
	shares := map[string]float64{}
	for _, o := range best {
		tier, sum := own, 0.0
		if !near(o) {
			tier = other
		}
		for _, b := range best {
			if near(b) == near(o) {
				sum += float64(b.Weight) * reach[b.Cluster]
			}
		}
		shares[o.Cluster] = tier / (own + other) * float64(o.Weight) * reach[o.Cluster] / sum
	}
	return shares
}

// slowReach returns how much of each cluster can be used, from 0 to 1.
func slowReach(in PoolInput) map[string]float64 {
	all, ejected := 0, 0
	for _, o := range in.Offers {
		if len(o.Addresses) > 0 {
			h := in.Health[target(o.Cluster+" "+o.Addresses[0].String())]
			if !h.Failing {
				all++
			}
			if h.Ejected && !h.Failing {
				ejected++
			}
		}
	}
	reach, none := map[string]float64{}, true
	for _, o := range in.Offers {
		if len(o.Addresses) == 0 {
			continue
		}
		h := in.Health[target(o.Cluster+" "+o.Addresses[0].String())]
		if !h.Failing && (!h.Ejected || ejected > all-ejected) {
			reach[o.Cluster] = max(0.05, 1-h.Cold)
			none = false
		}
	}
	if none {
		for _, o := range in.Offers {
			if len(o.Addresses) > 0 {
				reach[o.Cluster] = 1
			}
		}
	}
	return reach
}

// TestReasonsOfIngresses: whatever is not served as it was asked for has a reason, which names the value and what is allowed.
func TestReasonsOfIngresses(t *testing.T) {
	for want, all := range map[string][]*networkingv1.Ingress{
		`Ingress shop/web: Service none: does not exist`:                                                                    {ingress("shop/web", 1, "a.test / Prefix none:80")},
		`Ingress shop/web: Service a: has no TCP port 81`:                                                                   {ingress("shop/web", 1, "a.test / Prefix a:81")},
		`Ingress shop/web: Service a: has no TCP port dns`:                                                                  {ingress("shop/web", 1, "a.test / Prefix a:dns")},
		`Ingress shop/web: Service b: has no TCP port metrics`:                                                              {ingress("shop/web", 1, "* b:metrics")},
		`Ingress shop/web: rule of host "a.test": must have paths, or the Ingress a default backend`:                        {ingress("shop/web", 1, "a.test")},
		`Ingress shop/web: a backend is a resource: must be a Service`:                                                      {withResource(ingress("shop/web", 1, "a.test / Prefix a:80"))},
		`Ingress bank/web: host a.test is not served: another namespace has it`:                                             {ingress("shop/web", 2, "a.test / Prefix a:80"), ingress("bank/web", 1, "a.test / Prefix b:80")},
		`Ingress bank/web: host x.a.test is not served: another namespace has it`:                                           {ingress("shop/web", 2, "*.a.test / Prefix a:80"), ingress("bank/web", 1, "x.a.test / Prefix b:80")},
		`Ingress shop/b: host "a.test", path "/x/" is not served: Ingress shop/a has it, which is older, or it comes first`: {ingress("shop/a", 2, "a.test /x Prefix a:80"), ingress("shop/b", 1, "a.test /x/ Prefix b:80")},
	} {
		table := Routes(world(all...))
		if len(table.Reasons) == 0 || !slices.ContainsFunc(table.Reasons, func(r Reason) bool { return r.String() == want }) {
			t.Errorf("reasons %q, want %q", table.Reasons, want)
		}
	}
	if table := Routes(world(ingress("shop/web", 1, "a.test / Prefix a:80", "* b:http"))); len(table.Reasons) > 0 {
		t.Errorf("reasons where all is served: %v", table.Reasons)
	}
}

// TestABadIngressCostsItsOwnerOnly: whatever a namespace adds that is wrong, the routes of others stay the same, one by one.
func TestABadIngressCostsItsOwnerOnly(t *testing.T) {
	good := ingress("shop/web", 9, "a.test / Prefix a:80", "a.test /b Exact b:80", "*.w.test / Prefix c:80")
	asks := []string{"a.test /", "a.test /b", "a.test /b/", "x.w.test /", "nobody.test /"}
	before := Routes(world(good))
	for seed := range uint64(500) {
		var bad []*networkingv1.Ingress
		for _, i := range randomIngresses(rand.New(rand.NewPCG(seed, 6))) {
			i.Namespace = "mall"
			for n := range i.Spec.Rules {
				if seed%2 == 0 {
					i.Spec.Rules[n].Host = []string{"a.test", "x.w.test", "*.w.test"}[n%3]
				}
			}
			bad = append(bad, i)
		}
		after := Routes(world(append(bad, good)...))
		for _, a := range asks[:4] {
			host, path, _ := strings.Cut(a, " ")
			if was, is := ask(before, host, path), ask(after, host, path); was != is {
				t.Fatalf("seed %d: %s went to %s, and goes to %s", seed, a, was, is)
			}
		}
	}
}
