package validation

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"federation/apiserver/apis/federation/v1beta1"
)

// oraclePointer reads a JSON pointer letter by letter, as RFC 6901 says; false: it is none.
func oraclePointer(text string) (tokens []string, ok bool) {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '/':
			tokens = append(tokens, "")
			continue
		case len(tokens) == 0:
			return nil, false
		case text[i] != '~':
			tokens[len(tokens)-1] += text[i : i+1]
			continue
		case i+1 == len(text) || text[i+1] != '0' && text[i+1] != '1':
			return nil, false
		}
		i++
		tokens[len(tokens)-1] += map[byte]string{'0': "~", '1': "/"}[text[i]]
	}
	return tokens, len(tokens) > 0
}

// mayChange says of the tokens of a pointer whether they are an override's to change.
func mayChange(tokens []string) bool {
	switch tokens[0] {
	case "apiVersion", "kind", "status":
		return false
	case "metadata":
		return len(tokens) == 3 && (tokens[1] == "labels" || tokens[1] == "annotations") && tokens[2] != "" &&
			!strings.HasPrefix(tokens[2]+"/", "federation.kubernetes.io/") && !strings.HasPrefix(tokens[2]+"/", "federation.alpha.kubernetes.io/")
	}
	return true
}

// What an override says it changes must be a JSON pointer, letter by letter, to what is its own; what it only reads may be anything.
func TestPointersOfOverrides(t *testing.T) {
	words := strings.Fields("/ / / ~0 ~1 ~ ~2 a b metadata labels annotations status kind apiVersion spec " +
		"federation.kubernetes.io federation.kubernetes.io~1a federation.alpha.kubernetes.io~1b")
	r := rand.New(rand.NewPCG(15, 16))
	count := map[string]int{}
	for range 20_000 {
		text := ""
		if r.IntN(8) > 0 {
			text = []string{"/metadata/labels/", "/metadata/annotations/", "/metadata/", "/"}[r.IntN(4)]
		}
		for range r.IntN(4) {
			text += words[r.IntN(len(words))]
		}
		tokens, ok := oraclePointer(text)
		changes, reads := len(validatePointer(text, true, nil)) == 0, len(validatePointer(text, false, nil)) == 0
		if reads != ok || changes != (ok && mayChange(tokens)) {
			t.Fatalf("%q is %q: it may be read: %t, and changed: %t", text, tokens, reads, changes)
		}
		count[fmt.Sprint(reads, changes)]++
	}
	for _, seldom := range []string{"false false", "true false", "true true"} {
		if count[seldom] < 500 {
			t.Errorf("%v: this says little", count)
		}
	}
}

// The placement says how many replicas of a divided kind a cluster has, and nobody what kind of Secret it is: no operation changes these, where
// such objects are selected. Everything else of spec is the override's, in custom kinds of the same names, too.
func TestOverridesLeaveTheirKindsFieldAlone(t *testing.T) {
	fixed := map[string]string{"ReplicaSet": "/spec/replicas", "Deployment": "/spec/replicas", "StatefulSet": "/spec/replicas",
		"Job": "/spec/parallelism", "Secret": "/type"}
	selectable := []v1beta1.ResourceSelector{{APIVersion: "example.com/v1", Kind: "Deployment"}, {APIVersion: "example.com/v1", Kind: "Secret"}}
	for _, k := range v1beta1.FederatedKinds {
		if k.Kind != "Namespace" {
			selectable = append(selectable, v1beta1.ResourceSelector{APIVersion: k.Resource.GroupVersion().String(), Kind: k.Kind})
		}
	}
	for _, selector := range selectable {
		own := fixed[selector.Kind]
		if strings.HasPrefix(selector.APIVersion, "example.com") {
			own = ""
		}
		for _, pointer := range []string{"/spec/replicas", "/spec/parallelism", "/type", "/spec/replicas/a", "/spec/completions"} {
			for operation, changes := range map[string]bool{
				`{op: add, path: %s, value: 1}`: true, `{op: replace, path: %s, value: 1}`: true, `{op: remove, path: %s}`: true, `{op: test, path: %s, value: 1}`: false,
				`{op: move, path: /spec/x, from: %s}`: true, `{op: copy, path: /spec/x, from: %s}`: false, `{op: move, from: /spec/x, path: %s}`: true,
				`{op: copy, from: /spec/x, path: %s}`: true,
			} {
				p := policy(t, fmt.Sprintf("{resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], overrides: [{jsonPatch: [%s]}]}", fmt.Sprintf(operation, pointer)))
				p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, selector)
				if errs := ValidatePlacementPolicy(p); len(errs) > 0 != (changes && pointer == own) {
					t.Errorf("%s %s: "+operation+": %v", selector.APIVersion, selector.Kind, pointer, errs)
				}
			}
		}
	}
}

// Of all kinds that Kubernetes has, a policy selects those that are federated, in the version that is, and no other.
func TestOnlyFederatedKindsOfKubernetesAreSelected(t *testing.T) {
	federated := map[string]bool{}
	for _, k := range v1beta1.FederatedKinds {
		federated[k.Resource.GroupVersion().WithKind(k.Kind).String()] = k.Kind != "Namespace"
	}
	selected := 0
	for kind := range scheme.Scheme.AllKnownTypes() {
		if kind.Version == "__internal" || kind.Group == "imagepolicy.k8s.io" || kind.Group == "apidiscovery.k8s.io" { // nothing of these is stored
			continue
		}
		apiVersion, name := kind.ToAPIVersionAndKind()
		errs := validateKind(v1beta1.ResourceSelector{APIVersion: apiVersion, Kind: name}, nil)
		if (len(errs) == 0) != federated[kind.String()] {
			t.Errorf("%s: %v, want %t", kind, errs, federated[kind.String()])
		}
		if len(errs) == 0 {
			selected++
		}
	}
	if want := len(v1beta1.FederatedKinds) - 1; selected != want {
		t.Errorf("%d kinds are selected, want %d", selected, want)
	}
}

// The address of a cluster is what stands for the host in a URL, with a port that there is; an IPv6 address may stand there without brackets.
func TestServerAddressesAreHostsOfURLs(t *testing.T) {
	hosts := []string{"example.com", "a", "a-b.c", "A", "a_b", "-a", "a..b", "192.0.2.1", "2001:db8::1", "[2001:db8::1]", "::1", "[::1]", "fe80::1%eth0",
		"[fe80::1%eth0]", "[example.com]", "[192.0.2.1]", "",
		"https://a", "a/b", "a?b", "a#b", "u@a", "a b", "%41"}
	ports := []string{"", ":", ":0", ":1", ":6443", ":65535", ":65536", ":a", ":-1", ":+1", ":1:1", ": 1", ":1/"}
	good := 0
	for _, host := range hosts {
		for _, port := range ports {
			address := host + port
			accepted := len(validateServerAddress(address, nil)) == 0
			inURL := address
			if ip := net.ParseIP(address); ip != nil && ip.To4() == nil {
				inURL = "[" + address + "]"
			}
			u, err := url.Parse("https://" + inURL)
			possible := err == nil && u.Host == inURL && u.User == nil && u.Hostname() != "" && !strings.HasSuffix(address, ":")
			if possible && u.Port() != "" {
				n, err := net.LookupPort("tcp", u.Port())
				possible = err == nil && n > 0
			}
			if accepted && !possible {
				t.Errorf("%q is accepted, and %v, %v", address, u, err)
			}
			if accepted {
				good++
			}
			if plain := !strings.ContainsAny(host, "/?#@%_ A") && host != "-a" && host != "a..b" && host != "[2001:db8::1]" && host != "[::1]"; possible &&
				plain && !accepted {
				t.Errorf("%q is refused", address)
			}
		}
	}
	if good < 20 {
		t.Errorf("%d are accepted: this says little", good)
	}
}

// Networks of load balancers are those that the standard library knows, with no bit of a host; a client's network may have some.
func TestNetworksAreAsTheLibraryKnowsThem(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 18))
	refused := 0
	for range 3000 {
		address := fmt.Sprintf("%d.%d.%d.%d", r.IntN(2)*10, r.IntN(2)*128, r.IntN(257), r.IntN(3)*64)
		if r.IntN(2) == 0 {
			address = fmt.Sprintf("2001:db8:%x::%x", r.IntN(3)<<14, r.IntN(2))
		}
		cidr := fmt.Sprint(address, "/", r.IntN(34)+32*r.IntN(2))
		ip, network, err := net.ParseCIDR(cidr)
		exact := err == nil && ip.Equal(network.IP)
		if client := len(validateClientCIDR(cidr, nil)) == 0; client != (err == nil) {
			t.Fatalf("%s as a client's: %t, want %t", cidr, client, err == nil)
		}
		if balancers := len(validateNetworks([]string{cidr}, nil)) == 0; balancers != exact {
			t.Fatalf("%s as load balancers': %t, want %t", cidr, balancers, exact)
		}
		if !exact {
			refused++
		}
	}
	if refused < 300 || refused > 2700 {
		t.Errorf("%d of 3000 are refused: this says little", refused)
	}
	if len(validateNetworks([]string{"::ffff:192.0.2.0/120"}, nil)) == 0 {
		t.Error("a network of IPv4 addresses written as IPv6 ones holds no address of a load balancer, and is accepted")
	}
}

// What rotates is named by one part of the scope alone: "*" by itself, or names; and the scope in the schedule stays as it was written.
func TestScopesThatRotate(t *testing.T) {
	r := rand.New(rand.NewPCG(19, 20))
	names := func() []string { return []string{"*", "a", "b", "c"}[r.IntN(2):][:r.IntN(3)] }
	good := 0
	for range 1000 {
		scope := v1beta1.FailoverDrillScope{Zones: names(), Regions: names(), Clusters: names()}
		if r.IntN(2) == 0 {
			scope = []v1beta1.FailoverDrillScope{{Zones: names()}, {Regions: names()}, {Clusters: names()}}[r.IntN(3)]
		}
		s := &v1beta1.FailoverDrillSchedule{ObjectMeta: metav1.ObjectMeta{Name: "weekly"}, Spec: v1beta1.FailoverDrillScheduleSpec{Schedule: "@daily"}}
		s.Spec.Template.Spec = drillOf(func(d *v1beta1.FailoverDrill) { d.Spec.Scope = scope }).Spec
		s.Spec.Rotate = []v1beta1.DrillRotation{"", "Zones", "Regions", "Clusters"}[r.IntN(4)]
		rotates := map[v1beta1.DrillRotation][]string{"Zones": scope.Zones, "Regions": scope.Regions, "Clusters": scope.Clusters}[s.Spec.Rotate]
		all := slices.Concat(scope.Zones, scope.Regions, scope.Clusters)
		want := len(all) > 0 && !slices.Contains(all, "*")
		if s.Spec.Rotate != "" {
			want = len(rotates) > 0 && len(rotates) == len(all) && (len(all) == 1 || !slices.Contains(all, "*"))
		}
		before := scope.DeepCopy()
		errs := ValidateFailoverDrillSchedule(s)
		if (len(errs) == 0) != want {
			t.Fatalf("rotate %q, scope %+v: %v, want %t", s.Spec.Rotate, scope, errs, want)
		}
		if !slices.Equal(slices.Concat(before.Zones, before.Regions, before.Clusters), all) {
			t.Fatalf("the check made %+v of %+v", scope, before)
		}
		if want {
			good++
		}
	}
	if good < 100 || good > 900 {
		t.Errorf("%d of 1000 are good: this says little", good)
	}
}

// Warnings are for annotations that count for nothing on the kind that has them: those about DNS and Services too, if they are new or changed.
func TestAnnotationsWithoutEffectAreWarnedOf(t *testing.T) {
	for resource, kinds := range map[string]struct{ dns, service bool }{
		"services": {true, true}, "ingresses.networking.k8s.io": {true, false}, "deployments.apps": {false, false}, "secrets": {false, false},
	} {
		for key, counts := range map[string]bool{
			v1beta1.DNSAnnotation: kinds.dns, v1beta1.FallbackAnnotation: kinds.service, v1beta1.FallbackBelowAnnotation: kinds.service,
			v1beta1.ClusterSetIPAnnotation:    kinds.service,
			v1beta1.ClusterSelectorAnnotation: true,
		} {
			now := map[string]string{key: "x"}
			got := WarnOfAnnotations(schema.ParseGroupResource(resource), now, map[string]string{key: "y"})
			if counts != (len(got) == 0) || !counts && (len(got) != 1 || !strings.HasPrefix(got[0], "metadata.annotations["+key+"]: counts for nothing here")) {
				t.Errorf("%s on %s: %q", key, resource, got)
			}
			if again := WarnOfAnnotations(schema.ParseGroupResource(resource), now, now); len(again) > 0 {
				t.Errorf("%s on %s, which was there before: %q", key, resource, again)
			}
		}
	}
}
