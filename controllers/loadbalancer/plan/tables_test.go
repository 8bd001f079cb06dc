package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"federation/apiserver/apis/federation/v1beta1"
	servicednsplan "federation/controllers/servicedns/plan"
)

// TestTablesAgainstTheWhole: after each of many changes, one after the other, the table is the one that Routes makes of all that there is, and what was told
// of the differences adds up to it.
func TestTablesAgainstTheWhole(t *testing.T) {
	for seed := range uint64(25) {
		c := newChanging(seed)
		for n := range 200 {
			before, whole := c.tables.Table(), Routes(c.world())
			change := c.change()
			c.follow(c.tables.Change(change))
			if wrong := c.compare(); wrong != "" {
				t.Fatalf("seed %d, change %d, %+v: %s", seed, n, change, wrong)
			}
			if !reflect.DeepEqual(before.hosts, whole.hosts) || !maps.Equal(before.listeners, whole.listeners) {
				t.Fatalf("seed %d, change %d, %+v: the table before, which requests may still look at, was changed", seed, n, change)
			}
		}
	}
}

// changing is a World that changes, and Tables that follow it.
type changing struct {
	*rand.Rand
	tables    *Tables
	ingresses map[string]*networkingv1.Ingress
	services  map[string]*corev1.Service
	grants    []*v1beta1.DNSNameGrant
	kept      map[string]servicednsplan.Keep
	// pools, names and reasons are what was told.
	pools   map[PoolID]bool
	names   map[PoolID]string
	reasons map[Reason]bool
}

var changingPorts = PortRanges{{5000, 5003}}

func newChanging(seed uint64) *changing {
	c := &changing{
		Rand: rand.New(rand.NewPCG(seed, 21)), tables: NewTables(changingPorts, true), ingresses: map[string]*networkingv1.Ingress{}, services: map[string]*corev1.Service{},
		pools: map[PoolID]bool{}, names: map[PoolID]string{}, reasons: map[Reason]bool{},
	}
	return c
}

func (c *changing) world() World {
	return World{Ingresses: slices.Collect(maps.Values(c.ingresses)), Services: c.services, ServicePorts: changingPorts, UDP: true, Grants: c.grants, Kept: c.kept}
}

// change changes one thing or a few.
func (c *changing) change() Change {
	change := Change{Ingresses: map[string]*networkingv1.Ingress{}, Services: map[string]*corev1.Service{}}
	for range 1 + c.IntN(3) {
		switch c.IntN(12) {
		case 0:
			c.grants = c.randomGrants()
			change.Grants = &c.grants
		case 1:
			c.kept = c.randomKept()
			change.Kept = c.kept
		case 2, 3, 4, 5:
			key := pickOf(c.Rand, "shop/", "bank/", "mall/") + pickOf(c.Rand, "a", "b", "c", "d", "e", "f")
			s := c.randomService(key)
			if c.services[key] = s; s == nil {
				delete(c.services, key)
			}
			change.Services[key] = s
		default:
			i := c.randomIngress()
			key := i.Namespace + "/" + i.Name
			if c.ingresses[key] = i; c.IntN(4) == 0 {
				i = nil
				delete(c.ingresses, key)
			}
			change.Ingresses[key] = i
		}
	}
	return change
}

func pickOf[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// randomIngress is new, or another state of one that is there.
func (c *changing) randomIngress() *networkingv1.Ingress {
	all := randomIngresses(c.Rand)
	i := all[c.IntN(len(all))]
	i.Name = fmt.Sprint("i", c.IntN(6))
	if was := c.ingresses[i.Namespace+"/"+i.Name]; was != nil && c.IntN(4) > 0 {
		i.CreationTimestamp = was.CreationTimestamp
	}
	if c.IntN(10) == 0 {
		i.Spec.IngressClassName = new("other")
	}
	return i
}

// randomService is one that backends name, one of the class, one of another kind, or none.
func (c *changing) randomService(key string) *corev1.Service {
	s := balanced(key, c.IntN(4), int32(5000+c.IntN(5)), int32(5000+c.IntN(5)))
	switch c.IntN(6) {
	case 0:
		return nil
	case 1:
		s.Spec.Type = corev1.ServiceTypeClusterIP
	case 2:
		if c.IntN(2) == 0 {
			holding(s, s.Spec.Ports[0].Port)
		}
		return s
	case 3:
		s.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: int32(80 + c.IntN(2)), Protocol: []corev1.Protocol{"", corev1.ProtocolUDP}[c.IntN(2)]}}
	default:
		s.Spec.Ports = service(s.Namespace, s.Name).Spec.Ports
	}
	s.Spec.LoadBalancerClass = nil
	return s
}

func (c *changing) randomGrants() (all []*v1beta1.DNSNameGrant) {
	for range c.IntN(3) {
		g := &v1beta1.DNSNameGrant{}
		g.Spec.Suffix = pickOf(c.Rand, "one.test", "www.one.test", "test", "two.test")
		g.Spec.Namespaces = []string{pickOf(c.Rand, "shop", "bank", "mall")}
		all = append(all, g)
	}
	return all
}

func (c *changing) randomKept() map[string]servicednsplan.Keep {
	kept := map[string]servicednsplan.Keep{}
	for range c.IntN(4) {
		kept[pickOf(c.Rand, "one.test.", "two.test.", "www.one.test.", "*.one.test.", "a.www.one.test.")] = servicednsplan.Keep{Namespace: pickOf(c.Rand, "shop", "bank", "mall")}
	}
	return kept
}

// follow takes in what was told.
func (c *changing) follow(d Difference) {
	for _, id := range d.Gone {
		delete(c.pools, id)
		delete(c.names, id)
	}
	for _, id := range d.Come {
		c.pools[id] = true
	}
	for _, id := range slices.Concat(d.Come, d.Renamed) {
		c.names[id] = c.tables.ServerName(id)
	}
	for _, r := range d.Reasons {
		c.reasons[r] = true
	}
}

// compare returns what is not as in the whole table; "" if all is.
func (c *changing) compare() string {
	whole, table := Routes(c.world()), c.tables.Table()
	for r := range c.reasons { // differences name new reasons, not those that are gone
		if !slices.Contains(whole.Reasons, r) {
			delete(c.reasons, r)
		}
	}
	names := whole.ServerNames()
	maps.DeleteFunc(names, func(id PoolID, _ string) bool { return id.IsZero() })
	maps.DeleteFunc(c.names, func(_ PoolID, name string) bool { return name == "" })
	secrets := c.tables.Secrets()
	slices.Sort(secrets)
	told := sortedReasons(slices.Collect(maps.Keys(c.reasons)))
	all := c.tables.Pools()
	switch {
	case !reflect.DeepEqual(table.hosts, whole.hosts):
		return fmt.Sprintf("hosts %v, want %v", table.Hosts(), whole.Hosts())
	case !maps.Equal(table.listeners, whole.listeners):
		return fmt.Sprintf("listeners %v, want %v", table.listeners, whole.listeners)
	case !slices.Equal(c.tables.Reasons(), whole.Reasons):
		return fmt.Sprintf("reasons %v, want %v", c.tables.Reasons(), whole.Reasons)
	case !slices.Equal(told, whole.Reasons):
		return fmt.Sprintf("reasons told %v, want %v", told, whole.Reasons)
	case !maps.Equal(c.pools, whole.Pools()) || len(all) != len(c.pools) || slices.ContainsFunc(all, func(id PoolID) bool { return !c.pools[id] }):
		return fmt.Sprintf("pools %v, told %v, want %v", all, c.pools, whole.Pools())
	case !slices.Equal(secrets, whole.Secrets()):
		return fmt.Sprintf("Secrets %v, want %v", secrets, whole.Secrets())
	case !maps.Equal(c.names, names):
		return fmt.Sprintf("server names %v, want %v", c.names, names)
	}
	return ""
}

// TestAChangeMakesItsHostsOnly: the others are those of the table before.
func TestAChangeMakesItsHostsOnly(t *testing.T) {
	w := world(
		ingress("shop/web", 5, "a.test / Prefix a:80"), ingress("shop/api", 4, "b.test / Prefix b:80"), ingress("shop/wild", 3, "*.w.test / Prefix c:80"),
		ingress("bank/x", 2, "x.w.test / Prefix a:80"), ingress("mall/any", 1, "c.test / Prefix d:80", "* d:80"),
	)
	for change, c := range map[string]struct {
		Change
		again []string
	}{
		"a path":                  {Change{Ingresses: map[string]*networkingv1.Ingress{"shop/web": ingress("shop/web", 5, "a.test / Prefix a:80", "a.test /new Prefix b:80")}}, []string{"a.test"}},
		"another host":            {Change{Ingresses: map[string]*networkingv1.Ingress{"shop/web": ingress("shop/web", 5, "d.test / Prefix a:80")}}, []string{"d.test"}},
		"a wildcard's path":       {Change{Ingresses: map[string]*networkingv1.Ingress{"shop/wild": ingress("shop/wild", 3, "*.w.test /new Prefix c:80")}}, []string{"*.w.test"}},
		"a wildcard that is gone": {Change{Ingresses: map[string]*networkingv1.Ingress{"shop/wild": nil}}, []string{"x.w.test"}},
		"a default backend":       {Change{Ingresses: map[string]*networkingv1.Ingress{"mall/any": ingress("mall/any", 1, "c.test / Prefix d:80", "* e:80")}}, []string{"", "c.test"}},
		"a backend that is gone":  {Change{Services: map[string]*corev1.Service{"shop/b": nil}}, []string{"b.test"}},
		"a backend of two":        {Change{Services: map[string]*corev1.Service{"shop/a": service("shop", "a"), "bank/a": nil}}, nil}, // bank's host is covered by shop's wildcard
		"a host of a namespace":   {Change{Kept: map[string]servicednsplan.Keep{"x.w.test.": {Namespace: "bank"}}}, []string{"x.w.test"}},
	} {
		tables := tablesOf(w)
		before := tables.Table()
		tables.Change(c.Change)
		var again []string
		for name, h := range tables.Table().hosts {
			if before.hosts[name] != h {
				again = append(again, name)
			}
		}
		if slices.Sort(again); !slices.Equal(again, c.again) {
			t.Errorf("%s: %q are made again, want %q", change, again, c.again)
		}
	}
}

// tablesOf has taken in a World.
func tablesOf(w World) *Tables {
	c := Change{Ingresses: map[string]*networkingv1.Ingress{}, Services: w.Services, Grants: &w.Grants, Kept: w.Kept}
	for _, i := range w.Ingresses {
		c.Ingresses[i.Namespace+"/"+i.Name] = i
	}
	t := NewTables(w.ServicePorts, w.UDP)
	t.Change(c)
	return t
}

// BenchmarkChange changes one host of a thousand, as BenchmarkRoutes has them.
func BenchmarkChange(b *testing.B) {
	w := thousand()
	tables := tablesOf(w)
	for n := 0; b.Loop(); n++ {
		is := w.Ingresses[n%len(w.Ingresses)].DeepCopy()
		is.Generation = int64(n)
		tables.Change(Change{Ingresses: map[string]*networkingv1.Ingress{is.Namespace + "/" + is.Name: is}})
	}
}
