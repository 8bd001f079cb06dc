package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
)

// ledger is the content of the ConfigMap.
type ledger map[string]string

// settle writes what the claims decide and reads it back.
func (l ledger) settle(c *Claims, now time.Time) {
	for name, text := range c.Settle(now) {
		if delete(l, name); text != nil {
			l[name] = *text
		}
	}
	c.Keep(ParseKept(l))
}

func claimant(kind, namespace, name string, made time.Time, hosts ...string) *Object {
	o := &Object{Kind: kind, Namespace: namespace, Name: name, Created: made, Hosts: hosts}
	if kind == KindService {
		o.Settings = &v1beta1.DNSSettings{Hosts: hosts}
	}
	return o
}

// Objects come and go, claim other hosts and lose their addresses; the process restarts; time passes. No host changes
// its namespace until nobody in the namespace has claimed it for an hour.
func TestNoHostChangesNamespaceWithinTheHoldDown(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		objects, written := map[string]*Object{}, ledger{}
		claims := NewClaims(Zone{Federation: "fed", Name: zone})
		owner, wanted := map[string]string{}, map[string]time.Time{} // namespaces, and when they last wanted the host, by host
		changed := 0
		for step := range 300 {
			key := fmt.Sprintf("%s n%d/web", []string{KindService, KindIngress}[r.IntN(2)], r.IntN(3))
			kind, rest, _ := strings.Cut(key, " ")
			switch r.IntN(6) {
			case 0:
				delete(objects, key)
				claims.Drop(key)
			case 1, 2, 3: // claims other hosts; may be older than their owner
				o := claimant(kind, strings.TrimSuffix(rest, "/web"), "web", now.Add(-time.Duration(r.IntN(1000))*time.Hour), fmt.Sprintf("h%d.example.com", r.IntN(4)))
				if old := objects[key]; old != nil {
					o.Created = old.Created
				}
				if r.IntN(2) == 0 {
					o.Ingresses = &v1beta1.ServiceIngresses{}
				}
				objects[key] = o
				claims.Set(o)
			case 4:
				now = now.Add(time.Duration(r.IntN(50)) * time.Minute)
			case 5: // a restart
				claims = NewClaims(Zone{Federation: "fed", Name: zone})
				claims.Keep(ParseKept(written))
				for _, o := range objects {
					claims.Set(o)
				}
			}
			written.settle(claims, now)
			for i := range 4 {
				name := fmt.Sprintf("h%d.%s", i, zone)
				has := claims.ownerOf(name)
				if ns := namespaceOf(has); has != "" {
					if was := owner[name]; was != "" && was != ns {
						if changed++; now.Sub(wanted[name]) < HoldDown {
							t.Fatalf("seed %d, step %d: %s went from %s to %s %s after the last object there wanted it", seed, step, name, was, ns, now.Sub(wanted[name]))
						}
					}
					owner[name] = ns
				}
				for key := range claims.claims[name] {
					if namespaceOf(key) == owner[name] {
						wanted[name] = now
					}
				}
			}
		}
		if seed == 0 && changed == 0 {
			t.Error("no host ever changed namespace: the histories are too short")
		}
	}
}

func TestWhoHasAHost(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	shop := claimant(KindIngress, "shop", "front", now.Add(-time.Hour), "login.example.com")
	evil := claimant(KindIngress, "evil", "front", now.Add(-1000*time.Hour))
	c, written := NewClaims(Zone{Federation: "fed", Name: zone}), ledger{}
	has := func(want string) {
		t.Helper()
		written.settle(c, now)
		if got := c.ownerOf("login.example.com."); got != want {
			t.Errorf("%q has it, want %q; written down: %v", got, want, written)
		}
	}
	c.Set(shop)
	c.Set(evil)
	has("Ingress shop/front") // which has no address in any cluster
	evil.Hosts = shop.Hosts
	c.Set(evil) // an older object comes to want it
	has("Ingress shop/front")
	if why := c.conflictReason("login.example.com.", "Ingress evil/front"); strings.Contains(why, "shop") {
		t.Errorf("another tenant is named: %s", why)
	}
	c.Drop("Ingress shop/front")
	has("")
	if why := c.conflictReason("login.example.com.", "Ingress evil/front"); why != "it is kept for another namespace, whose object had it, until 2026-01-01T13:00:00Z" {
		t.Errorf("why: %s", why)
	}
	now = now.Add(59 * time.Minute)
	has("")
	c.Set(claimant(KindService, "shop", "other", now, "login.example.com"))
	has("Service shop/other") // another object of the namespace
	now = now.Add(2 * time.Hour)
	has("Service shop/other")
	c.Drop("Service shop/other")
	has("")
	now = now.Add(HoldDown)
	has("Ingress evil/front")
	c.Drop("Ingress evil/front")
	has("")
	now = now.Add(HoldDown)
	if has(""); len(written) > 0 {
		t.Errorf("written down: %v", written)
	}
	if changes := c.Settle(now.Add(time.Hour)); len(changes) > 0 {
		t.Errorf("written again: %v", changes)
	}
}

// What one namespace leaves behind is bounded, without effect on others.
func TestWhatIsKeptIsBounded(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	c, written := NewClaims(Zone{Federation: "fed", Name: zone}), ledger{}
	c.Set(claimant(KindIngress, "shop", "front", now, "login.example.com"))
	written.settle(c, now)
	c.Drop("Ingress shop/front")
	for i := range 20 {
		var hosts []string
		for j := range 200 {
			hosts = append(hosts, fmt.Sprintf("%s-%d-%d.example.com", strings.Repeat("x", 50), i, j))
		}
		c.Set(claimant(KindIngress, "evil", "front", now, hosts...))
		now = now.Add(time.Minute)
		written.settle(c, now)
	}
	of := map[string]int{}
	for k := range maps.Values(ParseKept(written)) {
		of[k.Namespace]++
	}
	if of["evil"] != maxKeptOfOne || of["shop"] != 1 {
		t.Errorf("kept: %v", of)
	}
	for i := range 100 { // namespaces
		var hosts []string
		for j := range 200 {
			hosts = append(hosts, fmt.Sprintf("%s-%d-%d.example.com", strings.Repeat("x", 50), i, j))
		}
		c.Set(claimant(KindIngress, fmt.Sprintf("n%d", i), "front", now, hosts...))
	}
	written.settle(c, now)
	size := 0
	for name, text := range written {
		size += len(name) + len(text)
	}
	if size > maxKept || size < maxKept/2 {
		t.Errorf("%d bytes", size)
	}
}

// Whatever the ConfigMap contains, a host has at most one owner, which claims it, and settling once is enough.
func FuzzClaims(f *testing.F) {
	f.Add("login.example.com", "shop", "login.example.com")
	f.Add("login.example.com", "shop 2026-01-01T12:00:00Z", "Login.Example.com.")
	f.Add("example.com", "", "example.com")
	f.Add("x", "shop x", "*.example.com")
	f.Fuzz(func(t *testing.T, name, text, host string) {
		now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
		c, written := NewClaims(Zone{Federation: "fed", Name: zone}), ledger{name: text}
		c.Keep(ParseKept(written))
		c.Set(claimant(KindIngress, "shop", "a", now, host))
		c.Set(claimant(KindService, "evil", "b", now.Add(-time.Hour), host, "www.example.com"))
		for range 2 {
			written.settle(c, now)
		}
		if changes := c.Settle(now); len(changes) > 0 {
			t.Errorf("written a third time: %v", changes)
		}
		for name := range c.claims {
			if owner := c.ownerOf(name); owner != "" && !slices.Contains(c.hosts[owner], name) {
				t.Errorf("%s has %s and does not want it", owner, name)
			}
		}
	})
}

func grant(suffix string, namespaces ...string) *v1beta1.DNSNameGrant {
	return &v1beta1.DNSNameGrant{Spec: v1beta1.DNSNameGrantSpec{Suffix: suffix, Namespaces: namespaces}}
}

// A grant restricts its suffix at once. The longest suffix decides. A host of another namespace goes at once.
func TestGrants(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	c, written := NewClaims(Zone{Federation: "fed", Name: zone}), ledger{}
	shop, evil := claimant(KindIngress, "shop", "a", now, "www.login.example.com"), claimant(KindService, "evil", "b", now.Add(-time.Hour), "www.login.example.com")
	for _, step := range []struct {
		grants []*v1beta1.DNSNameGrant
		want   string
	}{
		{nil, "Service evil/b"},
		{[]*v1beta1.DNSNameGrant{grant("other.example.com", "shop"), grant("in.example.com", "shop")}, "Service evil/b"},
		{[]*v1beta1.DNSNameGrant{grant("login.example.com", "shop")}, "Ingress shop/a"},
		{[]*v1beta1.DNSNameGrant{grant("login.example.com", "shop"), grant("login.example.com", "evil")}, "Ingress shop/a"},
		{[]*v1beta1.DNSNameGrant{grant("example.com", "shop"), grant("www.login.example.com", "evil")}, "Service evil/b"},
		{[]*v1beta1.DNSNameGrant{grant("example.com")}, ""},
	} {
		c.Grant(step.grants)
		c.Set(shop)
		c.Set(evil)
		written.settle(c, now)
		if got := c.ownerOf("www.login.example.com."); got != step.want {
			t.Errorf("%q has it, want %q; written down %v", got, step.want, written)
		}
	}
	web := service("east-a=192.0.2.1")
	web.Namespace, web.Settings = "evil", &v1beta1.DNSSettings{Hosts: []string{"www.login.example.com"}}
	in := input(threeClusters(), web)
	in.Claims = NewClaims(Zone{Federation: "fed", Name: zone})
	in.Claims.Grant([]*v1beta1.DNSNameGrant{grant("login.example.com", "shop")})
	in.Claims.Set(&web)
	got := Records(in)
	if got := got.Condition(nil); got == nil || got.Published || got.Reason != NotGranted || strings.Contains(got.Message, "shop") {
		t.Errorf("condition %+v", got)
	}
	for _, set := range got.Records {
		if strings.HasPrefix(set.Name, "www.login") {
			t.Errorf("%s", set)
		}
	}
}
