package plan

import (
	"fmt"
	"strings"
	"testing"
)

// TestTheRoutesOfAnIngress: those that requests take by it, and none that others have.
func TestTheRoutesOfAnIngress(t *testing.T) {
	table := Routes(world(
		ingress("shop/old", 9, "a.test / Prefix a:80", "- /all Prefix a:80", "* b:80"),
		ingress("shop/new", 8, "a.test / Prefix c:80", "a.test /x Exact c:80", "A.test /y Prefix none:80", "tls cert a.test"),
		ingress("bank/web", 7, "*.a.test / Prefix a:80", "b.test / Prefix a:80", "- /own Prefix b:80"),
		ingress("mall/web", 6, "b.test / Prefix d:80", "www.a.test / Prefix d:80", "- /never Prefix d:80"),
	))
	show := func(key string) string {
		var out []string
		for _, r := range table.RoutesOf(key) {
			text := fmt.Sprintf("%s%s %s", r.Host, r.Path, r.Pool.Service)
			if r.Secret != "" {
				text += " " + r.Secret
			}
			if r.OwnHostsOnly {
				text += " own"
			}
			out = append(out, strings.TrimSpace(text))
		}
		return strings.Join(out, ", ")
	}
	for key, want := range map[string]string{
		"shop/old": "b, /all a, a.test b shop/cert, a.test/ a shop/cert", "shop/new": "a.test/x c shop/cert, a.test/y  shop/cert",
		"bank/web": "/own b own, *.a.test/ a, b.test/ a", "mall/web": "", "mall/none": "",
	} {
		if got := show(key); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	holders := map[string]string{}
	for _, r := range table.ReasonsOf("mall/web") {
		holders[r.Message] = r.Holder
		if strings.Contains(r.String(), "bank") {
			t.Errorf("the log tells of another namespace: %s", r)
		}
	}
	if got := fmt.Sprint(holders); got != "map[host b.test is not served: another namespace has it:bank/web host www.a.test is not served: another namespace has it:bank/web]" {
		t.Error(got)
	}
}
