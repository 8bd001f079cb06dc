package consoletest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// explainedRoutes is what explain says of an Ingress, as its page shows it.
func (s *server) explainedRoutes(t *testing.T) (routes, targets, balancers, problems []string) {
	t.Helper()
	var x struct {
		Routes struct {
			LoadBalancers []struct{ Name string }
			Routes        []struct{ Host, Path, Pool string }
			Pools         []struct {
				From []struct {
					Targets []struct {
						Cluster, Address, Why string
						Percent               float64
					}
				}
			}
			Problems []string
		}
	}
	must(t, json.Unmarshal([]byte(strings.TrimSuffix(s.plugin("explain", "ingress/front", "-n", "shop", "-o", "json"), "<nil>")), &x))
	for _, r := range x.Routes.Routes {
		pool := r.Pool
		if pool == "" {
			pool = "503: there is no such backend"
		}
		routes = append(routes, fmt.Sprintf("%s | %s Prefix | none | %s", r.Host, r.Path, pool))
	}
	for _, to := range x.Routes.Pools[0].From[0].Targets {
		share := "–"
		if to.Address != "" {
			share = fmt.Sprintf("%.1f %%", to.Percent)
		}
		targets = append(targets, strings.Join([]string{to.Cluster, share, "", to.Address, to.Why}, " | "))
	}
	for _, b := range x.Routes.LoadBalancers {
		balancers = append(balancers, b.Name)
	}
	if len(routes) != 2 || len(targets) != 8 || len(balancers) != 2 || len(x.Routes.Problems) != 1 {
		t.Fatalf("explain says %+v", x)
	}
	return routes, targets, balancers, x.Routes.Problems
}

// TestAnIngress compares the page of an Ingress with what explain says of it: hosts, the clusters behind each, with their share and why. The
// page of the Service behind it leads there, and so does the list.
func TestAnIngress(t *testing.T) {
	s := startServer(t)
	seedFew(t, s)
	routes, targets, balancers, problems := s.explainedRoutes(t)
	b := startBrowser(t, desk)
	b.open(s.console(t))
	b.waitText("Problems, oldest first")
	b.show("#/services?kind=ingresses&namespace=*")
	const link = `[...document.querySelectorAll("main tbody a")].find((e) => e.innerText === "front")`
	b.wait(link)
	b.show("#/service/shop/web")
	b.wait(`document.querySelector('[aria-label="Ingresses"] tbody')?.innerText.includes("www.example.com")`)
	b.eval(link+".click()", nil)
	b.waitText("Where requests go")
	b.waitText(problems[0])
	for label, want := range map[string][]string{"Hosts and paths": routes, "Requests to shop/web:80": targets} {
		var got []string
		b.eval(fmt.Sprintf(`[...document.querySelectorAll('[aria-label=%s] tbody tr')].map((r) => [...r.cells].map((c) => c.innerText.trim().replace(/\s+/g, " ")).join(" | "))`, quote(label)), &got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: the page says\n%q, explain\n%q", label, got, want)
		}
	}
	var got []string
	if b.eval(`[...document.querySelectorAll('[aria-label="Load balancers"] tbody th')].map((e) => e.innerText)`, &got); !slices.Equal(got, balancers) {
		t.Errorf("the page has the load balancers %q, explain %q", got, balancers)
	}
}
