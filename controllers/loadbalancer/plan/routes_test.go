package plan

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	servicednsplan "federation/controllers/servicedns/plan"
)

// TestClausesOfTheIngressAPI names what networking.k8s.io/v1 says, in its documentation of types and of Ingress, one clause a case.
func TestClausesOfTheIngressAPI(t *testing.T) {
	one := func(rules ...string) []*networkingv1.Ingress {
		return []*networkingv1.Ingress{ingress("shop/web", 1, rules...)}
	}
	for clause, c := range map[string]struct {
		ingresses []*networkingv1.Ingress
		// asks are "HOST PATH ANSWER".
		asks []string
	}{
		"Prefix / matches all paths":                                          {one("- / Prefix a:80"), []string{"x / a", "x /anything/at/all a"}},
		"Exact matches the path exactly, case and all":                        {one("- /foo Exact a:80"), []string{"x /foo a", "x /bar 404", "x /foo/ 404", "x /FOO 404"}},
		"Exact with a slash at its end does not match without":                {one("- /foo/ Exact a:80"), []string{"x /foo 404", "x /foo/ a"}},
		"Prefix matches with and without a slash at its end":                  {one("- /foo Prefix a:80"), []string{"x /foo a", "x /foo/ a"}},
		"Prefix with a slash at its end matches without":                      {one("- /foo/ Prefix a:80"), []string{"x /foo a", "x /foo/ a"}},
		"Prefix goes by elements, not by characters":                          {one("- /aaa/bb Prefix a:80"), []string{"x /aaa/bbb 404", "x /aaa/bb/b a"}},
		"Prefix /aaa/bbb matches itself":                                      {one("- /aaa/bbb Prefix a:80"), []string{"x /aaa/bbb a"}},
		"Prefix /aaa/bbb/ ignores its slash":                                  {one("- /aaa/bbb/ Prefix a:80"), []string{"x /aaa/bbb a"}},
		"Prefix /aaa/bbb matches the request's slash":                         {one("- /aaa/bbb Prefix a:80"), []string{"x /aaa/bbb/ a"}},
		"Prefix /aaa/bbb matches a path below":                                {one("- /aaa/bbb Prefix a:80"), []string{"x /aaa/bbb/ccc a"}},
		"Prefix /aaa/bbb does not match what only begins alike":               {one("- /aaa/bbb Prefix a:80"), []string{"x /aaa/bbbxyz 404"}},
		"Prefix / and /aaa: the longer one":                                   {one("- / Prefix a:80", "- /aaa Prefix b:80"), []string{"x /aaa/ccc b"}},
		"Prefix /, /aaa and /aaa/bbb: the longest one":                        {one("- / Prefix a:80", "- /aaa Prefix b:80", "- /aaa/bbb Prefix c:80"), []string{"x /aaa/bbb c"}},
		"Prefix /, /aaa and /aaa/bbb: what matches":                           {one("- / Prefix a:80", "- /aaa Prefix b:80", "- /aaa/bbb Prefix c:80"), []string{"x /ccc a"}},
		"no path matches: the default backend":                                {one("- /aaa Prefix a:80", "* d:80"), []string{"x /ccc d"}},
		"Exact goes before Prefix of the same path":                           {one("- /foo Prefix a:80", "- /foo Exact b:80"), []string{"x /foo b", "x /foo/ a", "x /foo/x a"}},
		"the longest path goes first, in any order":                           {one("- /a/b/c Prefix a:80", "- /a Prefix b:80", "- /a/b Exact c:80"), []string{"x /a/b/c/d a", "x /a/b c", "x /a/b/ b", "x /a/x b"}},
		"ImplementationSpecific is up to us: as Prefix":                       {one("- /foo ImplementationSpecific a:80"), []string{"x /foo/bar a", "x /foobar 404"}},
		"ImplementationSpecific may have no path: all":                        {one("- - ImplementationSpecific a:80"), []string{"x / a", "x /foo a"}},
		"a host matches exactly":                                              {one("foo.bar.com / Prefix a:80"), []string{"foo.bar.com / a", "bar.com / 404", "x.foo.bar.com / 404", "foo.bar.com.evil / 404"}},
		"a host matches in any case":                                          {one("Foo.Bar.com / Prefix a:80"), []string{"foo.bar.com / a"}},
		"without a host a rule is for all hosts":                              {one("- / Prefix a:80"), []string{"anything.test / a", "192.0.2.1 / a"}},
		"*.foo.com matches one label":                                         {one("*.foo.com / Prefix a:80"), []string{"bar.foo.com / a", "*.foo.com / 404"}},
		"*.foo.com does not match two labels":                                 {one("*.foo.com / Prefix a:80"), []string{"baz.bar.foo.com / 404"}},
		"*.foo.com does not match foo.com":                                    {one("*.foo.com / Prefix a:80"), []string{"foo.com / 404", ".foo.com / 404"}},
		"a precise host goes before a wildcard":                               {one("*.foo.com / Prefix a:80", "bar.foo.com / Prefix b:80"), []string{"bar.foo.com / b", "x.foo.com / a"}},
		"host and path must both match":                                       {one("a.test /foo Prefix a:80", "b.test /bar Prefix b:80"), []string{"a.test /foo a", "a.test /bar 404", "b.test /bar b", "b.test /foo 404"}},
		"hosts have paths of their own":                                       {one("a.test / Prefix a:80", "b.test / Prefix b:80"), []string{"a.test / a", "b.test / b"}},
		"no rules: all traffic goes to the default backend":                   {one("* d:80"), []string{"any.test / d", "other.test /x/y d"}},
		"neither host nor path matches: the default backend":                  {one("a.test /foo Prefix a:80", "* d:80"), []string{"a.test /bar d", "b.test /foo d"}},
		"a rule without paths: its host goes to the default backend":          {one("a.test", "* d:80"), []string{"a.test / d", "a.test /x d"}},
		"no default backend: up to us: 404":                                   {one("a.test /foo Prefix a:80"), []string{"a.test /bar 404", "b.test / 404"}},
		"a backend names a port by its name":                                  {one("- / Prefix a:http"), []string{"x / a"}},
		"a backend that does not exist":                                       {one("- / Prefix none:80", "- /port Prefix a:81", "- /udp Prefix a:53"), []string{"x / 503", "x /port 503", "x /udp 503"}},
		"rules without a host are for the namespace's own hosts too":          {one("a.test /foo Prefix a:80", "- /all Prefix b:80"), []string{"a.test /foo a", "a.test /all b", "b.test /all b", "b.test /foo 404"}},
		"several Ingresses of a namespace are one, the oldest first":          {[]*networkingv1.Ingress{ingress("shop/y", 1, "a.test / Prefix b:80", "a.test /y Prefix c:80"), ingress("shop/x", 2, "a.test / Prefix a:80")}, []string{"a.test / a", "a.test /y c"}},
		"an empty element is an element":                                      {one("- /aaa Prefix a:80", "- /aaa/bbb Prefix b:80"), []string{"x /aaa//bbb a", "x //aaa 404"}},
		"a path as long as the longest prefix, and one that begins with it":   {one("- /aaa/bbb Prefix a:80", "- /aaa Prefix b:80"), []string{"x /aaa/bbb a", "x /aaa/bbc b", "x /aaa/bbbb b", "x /aaa/bbb/ a", "x /aaa b"}},
		"what another namespace says of a host counts for nothing":            {[]*networkingv1.Ingress{ingress("shop/web", 2, "a.test /x Prefix a:80"), ingress("bank/web", 1, "a.test / Prefix b:80")}, []string{"a.test /x a", "a.test /y 404"}},
		"what another namespace says of all hosts counts for nothing there":   {[]*networkingv1.Ingress{ingress("shop/web", 1, "a.test /x Prefix a:80"), ingress("bank/web", 2, "- / Prefix b:80")}, []string{"a.test /x a", "a.test /y 404", "b.test / bank/b"}},
		"a host below an older wildcard of another namespace is not given":    {[]*networkingv1.Ingress{ingress("shop/web", 2, "*.a.test / Prefix a:80"), ingress("bank/web", 1, "x.a.test / Prefix b:80")}, []string{"x.a.test / a"}},
		"a younger wildcard of another namespace has what is left":            {[]*networkingv1.Ingress{ingress("shop/web", 1, "*.a.test / Prefix a:80"), ingress("bank/web", 2, "x.a.test / Prefix b:80")}, []string{"x.a.test / bank/b", "y.a.test / a"}},
		"a wildcard of one label gives nothing two labels below it":           {[]*networkingv1.Ingress{ingress("shop/web", 2, "*.a.test / Prefix a:80"), ingress("bank/web", 1, "y.x.a.test / Prefix b:80")}, []string{"y.x.a.test / bank/b"}},
		"with a default backend hosts of the TLS section are the Ingress'":    {[]*networkingv1.Ingress{ingress("shop/web", 2, "* a:80", "tls cert a.test"), ingress("bank/web", 1, "a.test / Prefix b:80")}, []string{"a.test / a"}},
		"a resource as a backend does not exist here, and costs no other":     {[]*networkingv1.Ingress{withResource(ingress("shop/web", 1, "a.test /x Prefix a:80", "a.test /y Prefix b:80"))}, []string{"a.test /x 503", "a.test /y b"}},
		"a path type that is left out is as ImplementationSpecific":           {[]*networkingv1.Ingress{withoutType(ingress("shop/web", 1, "a.test /x Exact a:80"))}, []string{"a.test /x/y a"}},
		"an Ingress that is being deleted is none":                            {[]*networkingv1.Ingress{deleted(ingress("shop/web", 1, "a.test / Prefix a:80"))}, []string{"a.test / 404"}},
		"other classes are others'":                                           {[]*networkingv1.Ingress{ofClass(ingress("shop/web", 1, "a.test / Prefix a:80"), "nginx")}, []string{"a.test / 404"}},
		"an Ingress without a class is nobody's here":                         {[]*networkingv1.Ingress{withoutClass(ingress("shop/web", 1, "a.test / Prefix a:80"))}, []string{"a.test / 404"}},
		"a Service without load balancers is no backend for several clusters": {one("a.test / Prefix inner:80"), []string{"a.test / 503"}},
	} {
		w := world(c.ingresses...)
		w.Services["shop/inner"] = service("shop", "inner")
		w.Services["shop/inner"].Spec.Type = corev1.ServiceTypeClusterIP
		table := Routes(w)
		for _, line := range c.asks {
			f := strings.Split(line, " ")
			if got := ask(table, f[0], f[1]); got != f[2] {
				t.Errorf("%s: %s%s goes to %s, want %s; reasons %v", clause, f[0], f[1], got, f[2], table.Reasons)
			}
		}
	}
}

func withResource(i *networkingv1.Ingress) *networkingv1.Ingress {
	i.Spec.Rules[0].HTTP.Paths[0].Backend = networkingv1.IngressBackend{Resource: &corev1.TypedLocalObjectReference{Kind: "Bucket", Name: "b"}}
	return i
}

func withoutType(i *networkingv1.Ingress) *networkingv1.Ingress {
	i.Spec.Rules[0].HTTP.Paths[0].PathType = nil
	return i
}

func deleted(i *networkingv1.Ingress) *networkingv1.Ingress {
	i.DeletionTimestamp = new(metav1.NewTime(time.Unix(1, 0)))
	return i
}

func ofClass(i *networkingv1.Ingress, class string) *networkingv1.Ingress {
	i.Spec.IngressClassName = &class
	return i
}

func withoutClass(i *networkingv1.Ingress) *networkingv1.Ingress {
	i.Spec.IngressClassName = nil
	return i
}

func grant(suffix string, namespaces ...string) *v1beta1.DNSNameGrant {
	return &v1beta1.DNSNameGrant{Spec: v1beta1.DNSNameGrantSpec{Suffix: suffix, Namespaces: namespaces}}
}

func TestWhoHasAHost(t *testing.T) {
	shop, bank := ingress("shop/web", 2, "a.test / Prefix a:80"), ingress("bank/web", 1, "a.test / Prefix b:80")
	for name, c := range map[string]struct {
		change func(*World)
		want   string
	}{
		"the older Ingress":                   {func(*World) {}, "a"},
		"who is known to have it in the zone": {func(w *World) { w.Kept = map[string]servicednsplan.Keep{"a.test.": {Namespace: "bank"}} }, "bank/b"},
		"whom a grant names":                  {func(w *World) { w.Grants = []*v1beta1.DNSNameGrant{grant("test", "bank")} }, "bank/b"},
		"a grant goes before who is known to have it": {func(w *World) {
			w.Grants = []*v1beta1.DNSNameGrant{grant("test", "shop")}
			w.Kept = map[string]servicednsplan.Keep{"a.test.": {Namespace: "bank"}}
		}, "a"},
		"nobody, as the grant is for somebody else":      {func(w *World) { w.Grants = []*v1beta1.DNSNameGrant{grant("a.test", "mall")} }, "404"},
		"nobody, while it is kept for another namespace": {func(w *World) { w.Kept = map[string]servicednsplan.Keep{"a.test.": {Namespace: "mall"}} }, "404"},
		"a wildcard of a kept host's parent takes nothing": {func(w *World) {
			w.Kept = map[string]servicednsplan.Keep{"a.test.": {Namespace: "bank"}}
			w.Ingresses = append(w.Ingresses, ingress("mall/web", 9, "*.test / Prefix c:80"))
		}, "bank/b"},
	} {
		w := world(shop, bank)
		c.change(&w)
		table := Routes(w)
		if got := ask(table, "a.test", "/"); got != c.want {
			t.Errorf("%s: %s has it, want %s; reasons %v", name, got, c.want, table.Reasons)
		}
		if len(table.Reasons) == 0 {
			t.Errorf("%s: there is no reason for who does not have it", name)
		}
		for _, r := range table.Reasons {
			if own, _, _ := strings.Cut(strings.TrimPrefix(r.Object, "Ingress "), "/"); own == "shop" && strings.Contains(r.Message, "bank") || own == "bank" && strings.Contains(r.Message, "shop") {
				t.Errorf("%s: %s tells of another namespace", name, r)
			}
		}
	}
}

func TestCertificatesOfHosts(t *testing.T) {
	table := Routes(world(
		ingress("shop/a", 3, "a.test / Prefix a:80", "tls cert-a a.test"),
		ingress("shop/b", 2, "b.test / Prefix a:80", "b.a.test / Prefix a:80", "*.w.test / Prefix a:80", "tls wild *.test *.w.test", "tls all"),
		ingress("shop/c", 1, "a.test /c Prefix a:80", "c.test / Prefix a:80", "tls late a.test"),
		ingress("bank/x", 1, "x.test / Prefix a:80", "tls theirs a.test x.test"),
	))
	for host, want := range map[string]string{"a.test": "shop/cert-a", "b.test": "shop/wild", "b.a.test": "shop/all", "x.w.test": "shop/wild", "c.test": "", "x.test": "bank/theirs"} {
		if got := table.Host(host).Secret; got != want {
			t.Errorf("%s has the certificate of Secret %q, want %q", host, got, want)
		}
	}
	if got, want := table.Secrets(), []string{"bank/theirs", "shop/all", "shop/cert-a", "shop/wild"}; !slices.Equal(got, want) {
		t.Errorf("Secrets %v, want %v", got, want)
	}
}

// TestRoutesAgainstAReference: the table answers as a slow reading of the API's words does.
func TestRoutesAgainstAReference(t *testing.T) {
	hosts := []string{"one.test", "two.test", "www.one.test", "x.one.test", "a.www.one.test", "b.www.one.test", "nobody.test", "test"}
	paths := []string{"/", "/a", "/a/", "/a/b", "/a/b/", "/a/bc", "/a/b/c", "/a/b/c/d", "/ab", "/abc", "/a//b", "/x"}
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := world(randomIngresses(r)...)
		table := Routes(w)
		for _, host := range hosts {
			for _, path := range paths {
				if got, want := ask(table, host, path), slowAnswer(w, host, path); got != want {
					t.Fatalf("seed %d: %s%s goes to %s, the reference says %s", seed, host, path, got, want)
				}
			}
			if got, want := askTLS(table, host), slowPassed(w, host); got != want {
				t.Fatalf("seed %d: TLS for %s goes to %s, the reference says %s", seed, host, got, want)
			}
		}
	}
}

// slowAnswer reads all rules for each request.
func slowAnswer(w World, host, path string) string {
	ingresses := slowIngresses(w.Ingresses)
	entry, own := slowEntry(w, ingresses, host)
	if own.namespace == "" {
		return "404"
	}
	ingresses = slices.DeleteFunc(ingresses, v1beta1.PassesTLS)
	if answer, ok := slowRules(w, ingresses, own.namespace, entry, path); ok {
		return answer
	}
	if answer, ok := slowRules(w, ingresses, own.namespace, "", path); ok {
		return answer
	}
	for _, name := range []string{entry, ""} {
		for _, i := range ingresses {
			if i.Namespace == own.namespace && i.Spec.DefaultBackend != nil && slices.Contains(v1beta1.BalancedHosts(i), name) {
				return slowBackend(w, i.Namespace, *i.Spec.DefaultBackend)
			}
		}
	}
	return "404"
}

// slowEntry finds the host that serves a name, and whose it is.
func slowEntry(w World, ingresses []*networkingv1.Ingress, host string) (string, slowOwner) {
	owners := slowOwners(w, ingresses)
	labels := strings.SplitN(host, ".", 2)
	for _, name := range []string{host, "*." + labels[len(labels)-1], ""} {
		if o, ok := owners[name]; ok && (name != "*."+host) {
			return name, o
		}
	}
	return "", slowOwner{}
}

// slowIngresses returns those of our class that are not being deleted, the oldest first.
func slowIngresses(all []*networkingv1.Ingress) (served []*networkingv1.Ingress) {
	for _, i := range all {
		if v1beta1.IsBalanced(i) {
			served = append(served, i)
		}
	}
	slices.SortFunc(served, byAge)
	return served
}

// slowOwner is the namespace that has a host.
type slowOwner struct {
	namespace string
	// order is the place of the Ingress that claimed it first, the oldest first.
	order int
	// kept: it is known to belong to that namespace, whatever the age of Ingresses.
	kept bool
}

// slowOwners decides which namespace has which host. The Ingresses are sorted. A host that is covered by an older wildcard of another
// namespace is that one's, so that nobody takes a part of what another namespace serves already.
func slowOwners(w World, ingresses []*networkingv1.Ingress) map[string]slowOwner {
	owners := map[string]slowOwner{}
	for order, i := range ingresses {
		for _, host := range v1beta1.BalancedHosts(i) {
			if _, taken := owners[host]; taken || !slowGranted(w, i.Namespace, host) || host == anyHost && v1beta1.PassesTLS(i) {
				continue
			}
			keep, kept := w.Kept[host+"."]
			if kept = kept && slowGranted(w, keep.Namespace, host); kept && keep.Namespace != i.Namespace {
				continue
			}
			owners[host] = slowOwner{namespace: i.Namespace, order: order, kept: kept}
		}
	}
	for host, own := range owners {
		wild := v1beta1.WildcardOf(host)
		if over, covered := owners[wild]; covered && wild != "" && over.namespace != own.namespace && over.order < own.order && !own.kept {
			delete(owners, host)
		}
	}
	return owners
}

func slowGranted(w World, namespace, host string) bool {
	_, granted := v1beta1.DNSNameGranted(w.Grants, namespace, strings.TrimPrefix(host, "*."))
	return granted
}

// slowPassed finds where TLS for a name is passed on to: by the oldest Ingress that says something about all of the host.
func slowPassed(w World, host string) string {
	ingresses := slowIngresses(w.Ingresses)
	entry, own := slowEntry(w, ingresses, host)
	for _, i := range ingresses {
		if entry == "" || i.Namespace != own.namespace || !v1beta1.PassesTLS(i) || !slices.Contains(v1beta1.BalancedHosts(i), entry) {
			continue
		}
		for _, rule := range i.Spec.Rules {
			if strings.ToLower(rule.Host) != entry || rule.HTTP == nil {
				continue
			}
			for _, p := range rule.HTTP.Paths {
				if p.Path == "/" && *p.PathType != networkingv1.PathTypeExact {
					return slowBackend(w, i.Namespace, p.Backend)
				}
			}
		}
		if i.Spec.DefaultBackend != nil {
			return slowBackend(w, i.Namespace, *i.Spec.DefaultBackend)
		}
	}
	return "here"
}

// slowRules finds the best rule of the host in the namespace.
func slowRules(w World, ingresses []*networkingv1.Ingress, namespace, host, path string) (answer string, found bool) {
	best, exact := -1, false
	for _, i := range ingresses {
		for _, rule := range i.Spec.Rules {
			if i.Namespace != namespace || strings.ToLower(rule.Host) != host || rule.HTTP == nil {
				continue
			}
			for _, p := range rule.HTTP.Paths {
				isExact := *p.PathType == networkingv1.PathTypeExact
				length := len(elements(p.Path))
				switch {
				case isExact && p.Path != path, !isExact && !beginsWith(elements(path), elements(p.Path)):
				case isExact && !exact, isExact == exact && length > best:
					best, exact, found = length, isExact, true
					answer = slowBackend(w, namespace, p.Backend)
				}
			}
		}
	}
	return answer, found
}

func slowBackend(w World, namespace string, b networkingv1.IngressBackend) string {
	s := w.Services[namespace+"/"+b.Service.Name]
	if s == nil || b.Service.Port.Number != 80 && b.Service.Port.Name != "http" {
		return "503"
	}
	return strings.TrimPrefix(namespace+"/"+s.Name, "shop/")
}

func elements(path string) []string {
	all := strings.Split(path, "/")
	for len(all) > 0 && all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

func beginsWith(path, prefix []string) bool {
	return len(path) >= len(prefix) && slices.Equal(path[:len(prefix)], prefix)
}

// TestNobodyTakesWhatIsServed is the law about tenants: what the youngest namespace adds changes no answer that another one gives.
func TestNobodyTakesWhatIsServed(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 2))
		var old, young []*networkingv1.Ingress
		for _, i := range randomIngresses(r) {
			if i.Namespace == "mall" {
				i.CreationTimestamp = metav1.NewTime(i.CreationTimestamp.Add(time.Hour))
				young = append(young, i)
			} else {
				old = append(old, i)
			}
		}
		before, after := Routes(world(old...)), Routes(world(slices.Concat(young, old)...))
		for _, host := range []string{"one.test", "two.test", "www.one.test", "x.one.test", "a.www.one.test", "nobody.test"} {
			for _, path := range []string{"/", "/a", "/a/b", "/a/b/c", "/x"} {
				was, is := ask(before, host, path), ask(after, host, path)
				served := before.Host(host) != nil
				if served && before.Host(host).Name != anyHost && was != is {
					t.Fatalf("seed %d: %s%s went to %s, and goes to %s since a younger namespace has Ingresses", seed, host, path, was, is)
				}
				if served && is != was && !strings.HasPrefix(is, "mall/") && is != "404" && is != "503" {
					t.Fatalf("seed %d: %s%s went to %s, and goes to %s", seed, host, path, was, is)
				}
			}
			if was, is := askTLS(before, host), askTLS(after, host); before.Host(host) != nil && before.Host(host).Name != anyHost && was != is {
				t.Fatalf("seed %d: TLS for %s went to %s, and goes to %s since a younger namespace has Ingresses", seed, host, was, is)
			}
		}
	}
}

func TestTheOrderOfIngressesDoesNotMatter(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 3))
		all := randomIngresses(r)
		one := Routes(world(all...))
		r.Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
		if other := Routes(world(all...)); !reflect.DeepEqual(one, other) {
			t.Fatalf("seed %d: the tables differ by the order of Ingresses", seed)
		}
	}
}

// TestPoolsOfATable: each route's pool is among them, and no other.
func TestPoolsOfATable(t *testing.T) {
	table := Routes(world(ingress("shop/x", 2, "a.test / Prefix a:80", "a.test /none Prefix none:80", "- /b Exact b:80", "* c:80"), ingress("bank/x", 1, "b.test / Prefix a:http")))
	want := map[PoolID]bool{
		{Namespace: "shop", Service: "a", Port: 80}: true, {Namespace: "shop", Service: "b", Port: 80}: true, {Namespace: "shop", Service: "c", Port: 80}: true,
		{Namespace: "bank", Service: "a", Port: 80}: true,
	}
	if got := table.Pools(); !reflect.DeepEqual(got, want) {
		t.Errorf("pools %v, want %v", got, want)
	}
	if got, want := table.Hosts(), []string{"", "a.test", "b.test"}; !slices.Equal(got, want) {
		t.Errorf("hosts %q, want %q", got, want)
	}
}

// FuzzMatch: no path makes a match panic, and none differs from the reference.
func FuzzMatch(f *testing.F) {
	f.Add("www.one.test", "/a/b", uint64(1))
	f.Add("*.one.test", "//", uint64(7))
	f.Fuzz(func(t *testing.T, host, path string, seed uint64) {
		if !strings.HasPrefix(path, "/") {
			return
		}
		w := world(randomIngresses(rand.New(rand.NewPCG(seed, 1)))...)
		table := Routes(w)
		if h := table.Host(host); h == nil || h.Name == anyHost || h.Name != host {
			_ = ask(table, host, path)
			return
		}
		if got, want := ask(table, host, path), slowAnswer(w, host, path); got != want {
			t.Errorf("%s%s goes to %s, the reference says %s", host, path, got, want)
		}
	})
}

// BenchmarkRoutes makes the table of a thousand hosts.
func BenchmarkRoutes(b *testing.B) {
	w := thousand()
	for b.Loop() {
		Routes(w)
	}
}

// thousand has so many hosts, each of an Ingress of its own.
func thousand() World {
	w := world()
	for n := range 1000 {
		host := strings.Repeat("x", n%20) + "h" + string(rune('a'+n%26)) + strings.Repeat("y", n/26) + ".test"
		w.Ingresses = append(w.Ingresses, ingress("shop/"+host, n, host+" / Prefix a:80", host+" /api Prefix b:80"))
	}
	return w
}
